// Built layer by layer with the Builder of tests/passes/graphs.h.
#include "tests/passes/compress/networks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;

class Net : public Builder {
 public:
  const std::vector<int64_t>& Dims(ValueId x) {
    return graph.value(x).type.dims;
  }
  ValueId Weight(std::vector<int64_t> dims) {
    return Parameter(absl::StrCat("w", weights_++), std::move(dims));
  }
  ValueId Conv(ValueId x, int64_t out, int64_t kernel, int64_t stride = 1,
               int64_t groups = 1) {
    const int64_t pad = kernel / 2;
    return Op("Conv", {x, Weight({out, Dims(x)[1] / groups, kernel, kernel})},
              {{"kernel_shape", Ints{kernel, kernel}},
               {"strides", Ints{stride, stride}},
               {"pads", Ints{pad, pad, pad, pad}},
               {"dilations", Ints{1, 1}},
               {"group", groups}});
  }
  ValueId Norm(ValueId x) {
    const int64_t c = Dims(x)[1];
    return Op("BatchNormTraining", {x, Weight({c}), Weight({c})},
              {{"epsilon", 1e-5}});
  }
  ValueId ConvNormRelu(ValueId x, int64_t out, int64_t kernel,
                       int64_t stride = 1, int64_t groups = 1) {
    return Op("Clip", {Norm(Conv(x, out, kernel, stride, groups))},
              {{"min", 0.0}, {"max", 6.0}});
  }
  ValueId Linear(ValueId x, int64_t out) {
    const ValueId y = Op("MatMul", {x, Weight({Dims(x).back(), out})});
    return Op("Add", {y, Weight({out})});
  }
  ValueId LayerNorm(ValueId x) {
    const int64_t width = Dims(x).back();
    return Op("LayerNormalization", {x, Weight({width}), Weight({width})},
              {{"axis", int64_t{2}}, {"epsilon", 1e-5}});
  }
  ValueId Reshape(ValueId x, Ints shape) {
    return Op("Reshape", {x}, {{"shape", std::move(shape)}});
  }
  ValueId Transpose(ValueId x, Ints perm) {
    return Op("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  // [B, H, S, D] each.
  ValueId Attend(ValueId q, ValueId k, ValueId v) {
    const ValueId scores = Op("MatMul", {q, k}, {{"trans_b", int64_t{1}}});
    const ValueId scaled = Op("Mul", {scores, Scalar(0.5f)});
    const ValueId p = Op("Softmax", {scaled}, {{"axis", int64_t{3}}});
    const ValueId o = Transpose(Op("MatMul", {p, v}), {0, 2, 1, 3});
    return Reshape(o, {Dims(o)[0], Dims(o)[1], Dims(o)[2] * Dims(o)[3]});
  }
  void Classify(ValueId pooled, int64_t classes) {
    Output(Linear(pooled, classes));
  }
  ValueId Pool(ValueId x) {
    return Op("ReduceMean", {x},
              {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  }

 private:
  int weights_ = 0;
};

ValueId InvertedResidual(Net& net, ValueId x, int64_t out, int64_t stride,
                         int64_t expansion) {
  const int64_t in = net.Dims(x)[1];
  ValueId y = net.ConvNormRelu(x, in * expansion, 1);
  y = net.ConvNormRelu(y, in * expansion, 3, stride, in * expansion);
  y = net.Norm(net.Conv(y, out, 1));
  return stride == 1 && in == out ? net.Op("Add", {x, y}) : y;
}

ValueId DenseLayers(Net& net, ValueId x, int layers, int64_t growth) {
  for (int i = 0; i < layers; ++i) {
    ValueId y = net.Op("Relu", {net.Norm(x)});
    y = net.Op("Relu", {net.Norm(net.Conv(y, 4 * growth, 1))});
    y = net.Conv(y, growth, 3);
    x = net.Op("Concat", {x, y}, {{"axis", int64_t{1}}});
  }
  return x;
}

ValueId VisionBlock(Net& net, ValueId x, int64_t heads) {
  const std::vector<int64_t> dims = net.Dims(x);
  const int64_t head = dims[2] / heads;
  const ValueId packed =
      net.Transpose(net.Reshape(net.Linear(net.LayerNorm(x), 3 * dims[2]),
                                {dims[0], dims[1], 3, heads, head}),
                    {2, 0, 3, 1, 4});
  std::vector<ValueId> qkv;
  for (int64_t i = 0; i < 3; ++i) {
    const ValueId part = net.Op("Slice", {packed},
                                {{"starts", Ints{i}},
                                 {"ends", Ints{i + 1}},
                                 {"axes", Ints{0}},
                                 {"steps", Ints{1}}});
    qkv.push_back(net.Reshape(part, {dims[0], heads, dims[1], head}));
  }
  const ValueId attended = net.Attend(qkv[0], qkv[1], qkv[2]);
  x = net.Op("Add", {x, net.Linear(attended, dims[2])});
  const ValueId up =
      net.Op("Gelu", {net.Linear(net.LayerNorm(x), 4 * dims[2])});
  return net.Op("Add", {x, net.Linear(up, dims[2])});
}

// The root of the mean square over the width, as an export writes it out.
ValueId RmsNorm(Net& net, ValueId x) {
  const ValueId mean = net.Op("ReduceMean", {net.Op("Mul", {x, x})},
                              {{"axes", Ints{2}}, {"keepdims", int64_t{1}}});
  const ValueId root =
      net.Op("Sqrt", {net.Op("Add", {mean, net.Scalar(1e-5f)})});
  return net.Op("Mul",
                {net.Op("Div", {x, root}), net.Weight({net.Dims(x)[2]})});
}

}  // namespace

models::Graph MobileNetV2() {
  Net net;
  ValueId x = net.Input("x", {2, 3, 16, 16});
  x = net.ConvNormRelu(x, 8, 3, 2);
  x = InvertedResidual(net, x, 8, 1, 1);
  x = InvertedResidual(net, x, 12, 2, 6);
  x = InvertedResidual(net, x, 12, 1, 6);
  x = net.ConvNormRelu(x, 32, 1);
  net.Classify(net.Pool(x), 10);
  return net.graph;
}

models::Graph DenseNet() {
  Net net;
  ValueId x = net.Input("x", {2, 3, 16, 16});
  x = net.Conv(x, 8, 3);
  x = DenseLayers(net, x, 3, 4);
  x = net.Conv(net.Op("Relu", {net.Norm(x)}), 10, 1);
  x = net.Op("AveragePool", {x},
             {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  x = DenseLayers(net, x, 2, 4);
  net.Classify(net.Pool(net.Op("Relu", {net.Norm(x)})), 10);
  return net.graph;
}

models::Graph VisionTransformer() {
  Net net;
  ValueId x = net.Input("x", {2, 3, 16, 16});
  x = net.Conv(x, 24, 4, 4);
  const int64_t side = net.Dims(x)[2];
  x = net.Transpose(net.Reshape(x, {2, 24, side * side}), {0, 2, 1});
  const ValueId token =
      net.Op("Expand", {net.Weight({1, 1, 24})}, {{"shape", Ints{2, 1, 24}}});
  x = net.Op("Concat", {token, x}, {{"axis", int64_t{1}}});
  x = net.Op("Add", {x, net.Weight({1, side * side + 1, 24})});
  for (int i = 0; i < 2; ++i) x = VisionBlock(net, x, 4);
  x = net.Op("Slice", {net.LayerNorm(x)},
             {{"starts", Ints{0}},
              {"ends", Ints{1}},
              {"axes", Ints{1}},
              {"steps", Ints{1}}});
  net.Classify(net.Reshape(x, {2, 24}), 10);
  return net.graph;
}

models::Graph LlamaBlock() {
  Net net;
  const ValueId tokens = net.Input("tokens", {2, 6}, models::DType::kI64);
  const ValueId table = net.Weight({50, 32});
  ValueId x = net.Op("Gather", {table, tokens}, {{"axis", int64_t{0}}});
  const ValueId h = RmsNorm(net, x);
  const auto heads = [&](int64_t count) {
    const ValueId y = net.Op("MatMul", {h, net.Weight({32, count * 4})});
    return net.Transpose(net.Reshape(y, {2, 6, count, 4}), {0, 2, 1, 3});
  };
  const auto repeated = [&](ValueId kv) {
    const ValueId wide = net.Op("Expand", {net.Reshape(kv, {2, 4, 1, 6, 4})},
                                {{"shape", Ints{2, 4, 2, 6, 4}}});
    return net.Reshape(wide, {2, 8, 6, 4});
  };
  const ValueId q = heads(8), k = heads(4), v = heads(4);
  const ValueId attended = net.Attend(q, repeated(k), repeated(v));
  x = net.Op("Add", {x, net.Op("MatMul", {attended, net.Weight({32, 32})})});
  const ValueId m = RmsNorm(net, x);
  const ValueId gate = net.Op("MatMul", {m, net.Weight({32, 48})});
  const ValueId up = net.Op("MatMul", {m, net.Weight({32, 48})});
  const ValueId silu = net.Op("Mul", {gate, net.Op("Sigmoid", {gate})});
  const ValueId down =
      net.Op("MatMul", {net.Op("Mul", {silu, up}), net.Weight({48, 32})});
  x = RmsNorm(net, net.Op("Add", {x, down}));
  net.Output(net.Op("MatMul", {x, net.Weight({32, 50})}));
  return net.graph;
}

models::Graph Bottlenecks(int64_t blocks, int64_t width) {
  Net net;
  ValueId x = net.Input("x", {1, 3, 4, 4});
  x = net.ConvNormRelu(x, width, 1);
  for (int64_t i = 0; i < blocks; ++i) {
    ValueId y = net.ConvNormRelu(x, width / 4, 1);
    y = net.ConvNormRelu(y, width / 4, 3);
    x = net.Op("Relu", {net.Op("Add", {x, net.Norm(net.Conv(y, width, 1))})});
  }
  net.Classify(net.Pool(x), 10);
  return net.graph;
}

}  // namespace loadline::passes
