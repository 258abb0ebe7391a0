// Gradient cases of ONNX operators that the importer builds from others.
#include <gtest/gtest.h>

#include "tests/conformance/gradient_cases.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::executor {

using models::ValueId;
using models::ValueKind;

namespace {

// The model's f32 inputs become parameters.
GradientCase Imported(const std::string& name, const std::string& text,
                      float low = -2, float high = 2, int opset = 22) {
  return {"imported " + name, [=](GradientGraph& b) -> std::vector<ValueId> {
            auto imported = models::ImportText(text, {}, opset);
            EXPECT_TRUE(imported.ok()) << imported.status();
            if (!imported.ok()) return {};
            b.graph = std::move(imported->graph);
            for (const ValueId input : b.graph.inputs) {
              models::Value& value = b.graph.value(input);
              EXPECT_EQ(value.type.dtype, models::DType::kF32) << value.name;
              value.kind = ValueKind::kParameter;
              value.initial = b.Numbers(value.type.dims, low, high);
            }
            b.graph.inputs.clear();
            return b.graph.outputs;
          }};
}

}  // namespace

std::vector<GradientCase> ImportedGradientCases() {
  return {
      Imported("GatherElements with repeats",
               "g (float[3,4] x) => (float[a,b] y)"
               " <int64[2,4] i = {0, 2, -1, 1, 0, 0, 2, -2}> {"
               " y = GatherElements<axis=0>(x, i) }"),
      Imported("Scan to and fro",
               "g (float[2,2] h, float[2,3,2] x, float[3,2,2] w)"
               " => (float[2,2] y, float[a,b,c] z) {"
               " y, z = Scan<num_scan_inputs=2, scan_input_axes=[1,0],"
               " scan_input_directions=[1,0], scan_output_axes=[1], body = g"
               " (float[2,2] p, float[2,2] q, float[2,2] m)"
               " => (float[2,2] r, float[2,2] s) {"
               " t = MatMul(p, m) u = Add(t, q) r = Tanh(u)"
               " s = Mul(r, p) }>(h, x, w) }"),
      Imported("LinearAttention of groups",
               "g (float[1,3,8] q, float[1,3,4] k, float[1,3,4] v,"
               " float[1,3,2] d, float[1,3,2] b)"
               " => (float[1,3,8] y, float[1,2,2,2] s) {"
               " y, s = LinearAttention<q_num_heads=4, kv_num_heads=2,"
               " update_rule=\"gated_delta\">(q, k, v, , d, b) }",
               -1, 1, 27),
      Imported("GatherND in batches",
               "g (float[2,3,4] x) => (float[a,b,c] y)"
               " <int64[2,2,1] i = {0, -1, 1, 1}> {"
               " y = GatherND<batch_dims=1>(x, i) }"),
      Imported("ScatterElements",
               "g (float[3,4] x, float[2,4] u) => (float[a,b] y)"
               " <int64[2,4] i = {0, 2, 2, 1, 1, 0, 0, -1}> {"
               " y = ScatterElements<axis=0>(x, i, u) }"),
      Imported("ScatterElements that adds",
               "g (float[3,4] x, float[3,2] u) => (float[a,b] y)"
               " <int64[3,2] i = {0, 0, 2, 1, 3, -1}> {"
               " y = ScatterElements<axis=1, reduction=\"add\">(x, i, u) }"),
      Imported("ScatterElements to the largest",
               "g (float[3,4] x, float[3,2] u) => (float[a,b] y)"
               " <int64[3,2] i = {0, 0, 2, 1, 3, -1}> {"
               " y = ScatterElements<axis=1, reduction=\"max\">(x, i, u) }"),
      Imported("ScatterND to the smallest",
               "g (float[4,3] x, float[3,3] u) => (float[a,b] y)"
               " <int64[3,1] i = {3, 1, 3}> {"
               " y = ScatterND<reduction=\"min\">(x, i, u) }"),
      Imported("ScatterElements that multiplies",
               "g (float[3,4] x, float[3,2] u) => (float[a,b] y)"
               " <int64[3,2] i = {0, 0, 2, 1, 3, -1}> {"
               " y = ScatterElements<axis=1, reduction=\"mul\">(x, i, u) }"),
      Imported("ScatterElements that multiplies by zeros",
               "g (float[1,4] x, float[1,5] u) => (float[a,b] y)"
               " <int64[1,6] i = {0, 0, 1, 1, 1, 2}> {"
               " o = Sub(u, u) s = Constant<value_ints=[1]>()"
               " a = Constant<value_ints=[0]>() f = Slice(o, a, s, s)"
               " z = Constant<value_ints=[2]>() f2 = Slice(o, a, z, s)"
               " b = Constant<value_ints=[3]>() p = Slice(u, a, b, s)"
               " v = Concat<axis=1>(f, p, f2)"
               " y = ScatterElements<axis=1, reduction=\"mul\">(x, i, v) }"),
      Imported("ScatterND",
               "g (float[4,3] x, float[2,3] u) => (float[a,b] y)"
               " <int64[2,1] i = {3, 1}> { y = ScatterND(x, i, u) }"),
      Imported(
          "Slice backwards",
          "g (float[5,4] x) => (float[a,b] y) {"
          " s = Constant<value_ints=[4,3]>()"
          " e = Constant<value_ints=[0,-9]>()"
          " a = Constant<value_ints=[0,1]>()"
          " t = Constant<value_ints=[-2,-1]>() y = Slice(x, s, e, a, t) }"),
      Imported("DepthToSpace",
               "g (float[1,8,2,3] x) => (float[a,b,c,d] y) {"
               " y = DepthToSpace<blocksize=2, mode=\"CRD\">(x) }"),
      Imported("Trilu",
               "g (float[2,3,4] x) => (float[a,b,c] y) {"
               " k = Constant<value_int=1>() y = Trilu<upper=0>(x, k) }"),
      Imported("ReduceMax of two axes apart",
               "g (float[2,3,4] x) => (float[a] y) {"
               " s = Constant<value_ints=[0,2]>()"
               " y = ReduceMax<keepdims=0>(x, s) }"),
      Imported("ReduceProd with a zero",
               "g (float[2,3] x, float[2,1] z) => (float[a,b] y) {"
               " n = Sub(z, z) s = Constant<value_ints=[1]>()"
               " c = Concat<axis=1>(x, n) y = ReduceProd(c, s) }"),
      Imported("ReduceLogSumExp",
               "g (float[2,3,4] x) => (float[a,b] y) {"
               " s = Constant<value_ints=[1]>()"
               " y = ReduceLogSumExp<keepdims=0>(x, s) }"),
      Imported("TopK",
               "g (float[3,5,2] x) => (float[a,b,c] y) {"
               " k = Constant<value_ints=[2]>()"
               " y, i = TopK<axis=1, largest=0>(x, k) }"),
      Imported("Einsum of batches",
               "g (float[2,3,4] a, float[4,2,5] b) => (float[x,y,z] y) {"
               " y = Einsum<equation=\"bij,jbk->kbi\">(a, b) }"),
      Imported("Einsum of three operands, a diagonal and a sum",
               "g (float[3,3,2] a, float[2,3] b, float[4] c) => (float[x,y] y)"
               " { y = Einsum<equation=\"iij,ji,k->jk\">(a, b, c) }"),
      Imported("Einsum with an ellipsis",
               "g (float[2,3,4] a, float[1,4,3] b) => (float[x,y,z] y) {"
               " y = Einsum<equation=\"...ij,...jk->...ik\">(a, b) }"),
      Imported("LayerNormalization whose statistics are read",
               "g (float[2,5] x, float[5] s) => (float[a,b] y) {"
               " n, m, r = LayerNormalization(x, s)"
               " p = Mul(n, m) y = Add(p, r) }"),
      Imported("GroupNormalization",
               "g (float[2,4,3] x, float[4] s, float[4] t) => (float[a,b,c] y) "
               "{ y = GroupNormalization<num_groups=2, epsilon=0.01>(x, s, t)"
               " }"),
      Imported("LpNormalization",
               "g (float[2,5] x) => (float[a,b] y) {"
               " y = LpNormalization<axis=1, p=2>(x) }"),
      Imported("LRN",
               "g (float[2,5,3] x) => (float[a,b,c] y) {"
               " y = LRN<size=3, alpha=0.5>(x) }"),
      Imported("SoftmaxCrossEntropyLoss",
               "g (float[3,5] x, float[5] w) => (float y)"
               " <int64[3] t = {1, -100, 4}> {"
               " y = SoftmaxCrossEntropyLoss<ignore_index=-100>(x, t, w) }",
               0.1f, 2),
      Imported("LpPool",
               "g (float[1,2,4,4] x) => (float[a,b,c,d] y) {"
               " y = LpPool<kernel_shape=[2,2], strides=[2,2], p=3>(x) }",
               0.2f, 2),
      Imported("GridSample of a trained image",
               "g (float[1,2,3,4] x) => (float[a,b,c,d] y)"
               " <float[1,1,3,2] p = {-0.9, 0.3, 0.1, 1.2, 0.55, -0.2}> {"
               " y = GridSample(x, p) }"),
      // Inside one pixel's square for both sides of the difference.
      Imported("GridSample along a trained grid",
               "g (float[1,1,1,2] p) => (float[a,b,c,d] y)"
               " <float[1,1,2,2] x = {1, -2, 3, 5}> {"
               " y = GridSample<align_corners=1>(x, p) }",
               -0.8f, 0.8f),
      Imported("GridSample by cubics along a trained grid with reflection",
               "g (float[1,1,1,2] p, float[1,1,4,4] x) => (float[a,b,c,d] y)"
               " { y = GridSample<mode=\"cubic\","
               " padding_mode=\"reflection\">(x, p) }",
               -1.9f, 1.9f),
      Imported("Col2Im",
               "g (float[2,8,4] x) => (float[a,b,c,d] y) {"
               " s = Constant<value_ints=[3,5]>()"
               " k = Constant<value_ints=[2,2]>()"
               " y = Col2Im<dilations=[1,2], pads=[0,1,0,1], strides=[1,3]>"
               "(x, s, k) }"),
      Imported("BatchNormalization without running statistics",
               "g (float[3,2,2] x, float[2] s, float[2] t) => (float[a,b,c] y)"
               " { f = Constant<value_ints=[0,2]>()"
               " m = ReduceMean<keepdims=0>(x, f)"
               " y, n, v = BatchNormalization<training_mode=1>(x, s, t, m, m)"
               " }"),
      Imported("Mod of reals",
               "g (float[2,3] x) => (float[a,b] y)"
               " <float[3] b = {1.5, -2.0, 0.7}> { y = Mod(x, b) }",
               0.1f, 0.6f),
      Imported("LSTM in both directions with lengths and peepholes",
               "g (float[3,2,2] x, float[2,8,2] w, float[2,8,2] r,"
               " float[2,16] b, float[2,2,2] h, float[2,2,2] c,"
               " float[2,6] p) => (float[i,j,k,l] y, float[m,n,o] z)"
               " <int32[2] t = {3, 2}> {"
               " y, n, z = LSTM<hidden_size=2, direction=\"bidirectional\">"
               "(x, w, r, b, t, h, c, p) }",
               -0.8f, 0.8f),
      Imported("GRU that resets before the product",
               "g (float[3,2,2] x, float[1,6,2] w, float[1,6,2] r,"
               " float[1,12] b, float[1,2,2] h) => (float[i,j,k,l] y) {"
               " y = GRU<hidden_size=2>(x, w, r, b, , h) }",
               -0.8f, 0.8f),
      Imported("GRU that resets after the product, backwards",
               "g (float[2,3,2] x, float[1,6,2] w, float[1,6,2] r,"
               " float[1,12] b) => (float[i,j,k] z) {"
               " y, z = GRU<hidden_size=2, linear_before_reset=1, layout=1,"
               " direction=\"reverse\">(x, w, r, b) }",
               -0.8f, 0.8f),
      Imported("RNN with an activation that has numbers",
               "g (float[3,2,2] x, float[1,2,2] w, float[1,2,2] r)"
               " => (float[i,j,k,l] y) {"
               " y = RNN<hidden_size=2, activations=[\"ScaledTanh\"],"
               " activation_alpha=[1.5], activation_beta=[0.5]>(x, w, r) }",
               -0.8f, 0.8f),
      Imported("Conv of volumes",
               "g (float[1,2,3,4,3] x, float[2,2,2,3,2] w, float[2] b)"
               " => (float[i,j,k,l,m] y) {"
               " y = Conv<strides=[1,2,1], pads=[1,0,0,0,1,1]>(x, w, b) }",
               -1, 1),
      Imported("MaxPool of volumes",
               "g (float[1,2,4,3,4] x) => (float[i,j,k,l,m] y) {"
               " y = MaxPool<kernel_shape=[2,3,2], strides=[2,1,1],"
               " pads=[0,1,1,0,1,0]>(x) }"),
      Imported("AveragePool of volumes",
               "g (float[1,2,4,3,4] x) => (float[i,j,k,l,m] y) {"
               " y = AveragePool<kernel_shape=[2,3,2], strides=[2,1,1],"
               " pads=[1,1,1,0,1,0]>(x) }"),
      Imported("OneHot of trained values",
               "g (float[2] v) => (float[a,b] y) <int64[3] i = {0, 4, -2}> {"
               " d = Constant<value_int=4>() y = OneHot(i, d, v) }"),
  };
}

}  // namespace loadline::executor
