// Where quantizers stand, what they are, and what they begin with.
#include "passes/compress/add_fake_quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "passes/add_gradients.h"
#include "passes/add_loss.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Ints;
using models::NodeId;
using models::Tensor;
using models::ValueId;
using ::testing::HasSubstr;

const Attributes kConv = {{"kernel_shape", Ints{3, 3}},
                          {"strides", Ints{1, 1}},
                          {"pads", Ints{1, 1, 1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"group", int64_t{1}}};

// x -> Conv -> BatchNorm -> Relu -> MaxPool -> Conv -> Reshape -> Gemm.
Graph SmallCnn() {
  Builder b;
  const ValueId x = b.Input("x", {2, 1, 4, 4});
  const ValueId c = b.Op("Conv", {x, b.Parameter("w1", {3, 1, 3, 3})}, kConv);
  const ValueId n = b.Op("BatchNormTraining",
                         {c, b.Parameter("g", {3}), b.Parameter("s", {3})},
                         {{"epsilon", 1e-5}});
  const ValueId r = b.Op("Relu", {n});
  const ValueId p = b.Ops("MaxPool", {r},
                          {{"kernel_shape", Ints{2, 2}},
                           {"strides", Ints{2, 2}},
                           {"pads", Ints{0, 0, 0, 0}},
                           {"ceil_mode", int64_t{0}}})[0];
  const ValueId d = b.Op("Conv", {p, b.Parameter("w2", {2, 3, 3, 3})}, kConv);
  const ValueId f = b.Op("Reshape", {d}, {{"shape", Ints{2, 8}}});
  const ValueId y =
      b.Op("Gemm", {f, b.Parameter("w3", {5, 8}), b.Parameter("b3", {5})},
           {{"transB", int64_t{1}}});
  b.Output(y);
  return b.graph;
}

QuantizeRequest All(const Graph& graph, QuantizeStage stage,
                    QuantizeSpec spec = {}) {
  QuantizeRequest request;
  request.spec = spec;
  request.stage = stage;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::string& op = graph.nodes[i].op;
    if (op == "Conv" || op == "Gemm" || op == "MatMul") {
      request.nodes.push_back(NodeId{static_cast<int32_t>(i)});
    }
  }
  return request;
}

int Count(const Graph& graph, absl::string_view op) {
  int count = 0;
  for (const models::Node& node : graph.nodes) count += node.op == op;
  return count;
}

std::vector<QuantizedTensor> Quantize(Graph& graph, QuantizeStage stage,
                                      QuantizeSpec spec = {}) {
  const std::vector<QuantizeRequest> requests = {All(graph, stage, spec)};
  auto tensors = AddFakeQuantize(graph, requests);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  const absl::Status valid = models::VerifyGraph(graph);
  EXPECT_TRUE(valid.ok()) << valid;
  return tensors.ok() ? *tensors : std::vector<QuantizedTensor>();
}

const models::Node& Producer(const Graph& graph, ValueId id) {
  const models::GraphIndex index = models::IndexGraph(graph);
  return graph.nodes[static_cast<size_t>(index.producer[Index(id)])];
}

TEST(AddFakeQuantize, WritesOutOneMatMul) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  b.Output(b.Op("Relu", {b.Op("MatMul", {x, b.Parameter("w", {3, 4})})}));
  Quantize(b.graph, QuantizeStage::kTrain);
  EXPECT_EQ(Describe(b.graph), R"(%0, %1 = ValueRange(x)
%2, %3 = RangeUpdate(x.low, x.high, %0, %1) {average=1, momentum=0.9}
%4, %5 = QuantizationGrid(%2, %3) {bits=8, signed=0, symmetric=0}
%6 = FakeQuantize(x, %4, %5) {bits=8, signed=0, symmetric=0}
%7, %8 = ValueRange(w) {axis=1}
%9, %10 = QuantizationGrid(%7, %8) {bits=8, signed=1, symmetric=1}
%11 = FakeQuantize(w, %9, %10) {axis=1, bits=8, signed=1, symmetric=1}
%12 = MatMul(%6, %11)
%13 = Relu(%12)
%14, %15 = ValueRange(%13)
%16, %17 = RangeUpdate(n1.low, n1.high, %14, %15) {average=1, momentum=0.9}
%18, %19 = QuantizationGrid(%16, %17) {bits=8, signed=0, symmetric=0}
%20 = FakeQuantize(%13, %18, %19) {bits=8, signed=0, symmetric=0}
output %20
update x.low -> %2
update x.high -> %3
update n1.low -> %16
update n1.high -> %17
)");
}

TEST(AddFakeQuantize, QuantizesTensorsOnceAndBehindWhatIsFused) {
  Graph graph = SmallCnn();
  const auto tensors = Quantize(graph, QuantizeStage::kTrain);
  // x, Relu, MaxPool (shares), second Conv, Reshape (shares), Gemm; 3 weights.
  ASSERT_EQ(tensors.size(), 9u);
  EXPECT_EQ(Count(graph, "FakeQuantize"), 8);  // one of a bias
  EXPECT_EQ(Count(graph, "RangeUpdate"), 4);
  EXPECT_EQ(graph.updates.size(), 8u);
  for (const models::Node& node : graph.nodes) {
    if (node.op == "Conv") {
      EXPECT_EQ(Producer(graph, node.inputs[1]).op, "FakeQuantize");
    }
    if (node.op == "BatchNormTraining") {
      EXPECT_EQ(Producer(graph, node.inputs[0]).op, "Conv");
    }
    if (node.op == "MaxPool") {
      EXPECT_EQ(Producer(graph, node.inputs[0]).op, "FakeQuantize");
    }
    if (node.op == "Gemm") {
      EXPECT_EQ(Producer(graph, node.inputs[0]).op, "Reshape");
    }
  }
  EXPECT_EQ(Producer(graph, graph.outputs[0]).op, "FakeQuantize");
}

TEST(AddFakeQuantize, KeepsTheNameOfAnOutput) {
  Graph graph = SmallCnn();
  const std::string name = graph.value(graph.outputs[0]).name;
  Quantize(graph, QuantizeStage::kTrain);
  EXPECT_EQ(graph.value(graph.outputs[0]).name, name);
}

TEST(AddFakeQuantize, TakesTheAxisOfTheOutputsChannels) {
  Graph graph = SmallCnn();
  for (const QuantizedTensor& t : Quantize(graph, QuantizeStage::kTrain)) {
    if (!t.weight) {
      EXPECT_FALSE(t.axis.has_value());
      EXPECT_FALSE(t.is_signed);
      continue;
    }
    EXPECT_EQ(t.axis, 0) << t.name;
    EXPECT_TRUE(t.symmetric && t.is_signed);
  }
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 4})}));
  for (const QuantizedTensor& t : Quantize(b.graph, QuantizeStage::kTrain)) {
    if (t.weight) {
      EXPECT_EQ(t.axis, 1);
    }
  }
}

// The importer's form of a ConvTranspose with a bias.
TEST(AddFakeQuantize, StandsBehindTheBiasOfAConvTranspose) {
  Builder b;
  const ValueId x = b.Input("x", {2, 4, 3, 3});
  Attributes attributes = kConv;
  attributes.Set("shape", Ints{2, 5, 3, 3});
  const ValueId y =
      b.Op("ConvInputGrad", {x, b.Parameter("w", {4, 5, 3, 3})}, attributes);
  const ValueId bias =
      b.Op("Reshape", {b.Parameter("b", {5})}, {{"shape", Ints{5, 1, 1}}});
  b.Output(b.Op("Add", {y, bias}));
  const std::vector<QuantizeRequest> requests = {
      {.nodes = {NodeId{0}}, .stage = QuantizeStage::kFrozen}};
  ASSERT_TRUE(AddFakeQuantize(b.graph, requests).ok());
  const models::Node& last = Producer(b.graph, b.graph.outputs[0]);
  EXPECT_EQ(last.op, "FakeQuantize");
  EXPECT_EQ(Producer(b.graph, last.inputs[0]).op, "Add");
}

TEST(AddFakeQuantize, FollowsATransposeToTheParameter) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  const ValueId w =
      b.Op("Transpose", {b.Parameter("w", {4, 3})}, {{"perm", Ints{1, 0}}});
  b.Output(b.Op("MatMul", {x, w}));
  const auto tensors = Quantize(b.graph, QuantizeStage::kTrain);
  ASSERT_EQ(tensors.size(), 3u);
  const QuantizedTensor* weight = nullptr;
  for (const QuantizedTensor& t : tensors) weight = t.weight ? &t : weight;
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->name, "w");
  EXPECT_EQ(weight->axis, 0);
}

TEST(AddFakeQuantize, OnlyWatchesDuringCalibration) {
  Graph graph = SmallCnn();
  Quantize(graph, QuantizeStage::kCalibrate);
  EXPECT_EQ(Count(graph, "FakeQuantize"), 0);
  EXPECT_EQ(Count(graph, "RangeUpdate"), 4);
}

TEST(AddFakeQuantize, UpdatesNothingWhenFrozen) {
  Graph graph = SmallCnn();
  Quantize(graph, QuantizeStage::kFrozen);
  EXPECT_EQ(Count(graph, "FakeQuantize"), 8);
  EXPECT_EQ(Count(graph, "RangeUpdate"), 0);
  EXPECT_TRUE(graph.updates.empty());
}

TEST(AddFakeQuantize, TrainsThroughEveryQuantizer) {
  for (Quantizer quantizer :
       {Quantizer::kUniform, Quantizer::kLsq, Quantizer::kKMeans}) {
    Graph graph = SmallCnn();
    QuantizeSpec spec;
    spec.quantizer = quantizer;
    spec.bits.weight = 4;
    Quantize(graph, QuantizeStage::kTrain, spec);
    TrainingOptions options;
    options.loss.target = {models::DType::kI64, {2}};
    const auto step = BuildTrainingStep(graph, options, {});
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(Count(*step, "FakeQuantizeScaleGrad"),
              quantizer == Quantizer::kLsq ? 7 : 0);
    const int codebooks = quantizer == Quantizer::kKMeans ? 3 : 0;
    EXPECT_EQ(Count(*step, "Gather"), codebooks);
    EXPECT_EQ(Count(*step, "GatherGrad"), codebooks);
    int parameters = 0;
    for (const models::Node& node : step->nodes) parameters += node.op == "Sgd";
    // 3 weights or codebooks, the norm's two, one bias; lsq: 7 scales.
    EXPECT_EQ(parameters, quantizer == Quantizer::kLsq ? 13 : 6);
  }
}

TEST(AddFakeQuantize, RefusesWhatItCannotQuantize) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3, 3});
  b.Output(b.Op("MatMul", {x, x}));
  const std::vector<QuantizeRequest> requests = {
      All(b.graph, QuantizeStage::kTrain)};
  const absl::Status computed = AddFakeQuantize(b.graph, requests).status();
  EXPECT_EQ(computed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(computed.message(), HasSubstr("no weight to quantize"));

  Graph graph = SmallCnn();
  QuantizeSpec spec;
  spec.bits.weight = 1;
  const std::vector<QuantizeRequest> one_bit = {
      All(graph, QuantizeStage::kTrain, spec)};
  EXPECT_THAT(AddFakeQuantize(graph, one_bit).status().message(),
              HasSubstr("kmeans"));

  std::vector<QuantizeRequest> relu = {All(graph, QuantizeStage::kTrain)};
  relu[0].nodes = {NodeId{2}};
  EXPECT_EQ(AddFakeQuantize(graph, relu).status().code(),
            absl::StatusCode::kUnimplemented);
}

// What a phase before left: the graph's parameters, and some ranges.
ValueReader Before(const Graph& graph,
                   std::map<std::string, Tensor> more = {}) {
  std::map<std::string, Tensor> all = std::move(more);
  for (const models::Value& value : graph.values) {
    if (value.kind == models::ValueKind::kParameter) {
      all[value.name] = *value.initial;
    }
  }
  return [all](absl::string_view name) -> std::optional<Tensor> {
    const auto it = all.find(std::string(name));
    if (it == all.end()) return std::nullopt;
    return it->second;
  };
}

TEST(StartQuantizers, FillsCodebooksFromTheWeights) {
  Graph graph = SmallCnn();
  const ValueReader before = Before(graph);
  const Tensor w = *before("w2");
  QuantizeSpec spec;
  spec.quantizer = Quantizer::kKMeans;
  spec.bits.weight = 8;  // more entries than different weights: exact
  const auto tensors = Quantize(graph, QuantizeStage::kTrain, spec);
  ASSERT_TRUE(StartQuantizers(tensors, before, graph).ok());
  const auto entries = graph.value(*graph.Find("w2.codebook")).initial;
  const auto codes = graph.value(*graph.Find("w2.codes")).initial;
  for (size_t i = 0; i < w.as<float>().size(); ++i) {
    const auto code = static_cast<size_t>(codes->as<int32_t>()[i]);
    EXPECT_NEAR(entries->as<float>()[code], w.as<float>()[i], 1e-6);
  }
}

TEST(StartQuantizers, FillsScalesFromWeightsAndRanges) {
  Graph graph = SmallCnn();
  const ValueReader before =
      Before(graph, {{"x.low", models::ScalarTensor(-1)},
                     {"x.high", models::ScalarTensor(3)}});
  QuantizeSpec spec;
  spec.quantizer = Quantizer::kLsq;
  auto tensors = Quantize(graph, QuantizeStage::kTrain, spec);
  std::erase_if(tensors, [](const QuantizedTensor& t) {
    return t.name != "x" && t.name != "w1";
  });
  ASSERT_EQ(tensors.size(), 2u);
  ASSERT_TRUE(StartQuantizers(tensors, before, graph).ok());
  const auto x = graph.value(*graph.Find("x.log_scale")).initial;
  EXPECT_NEAR(std::exp(x->as<float>()[0]), 4.0 / 255, 1e-6);
  const auto zero = graph.value(*graph.Find("x.zero_point")).initial;
  EXPECT_EQ(zero->as<float>()[0], 64);
  // The first channel of w1 is 0.00, 0.01, ..., 0.08.
  const auto w = graph.value(*graph.Find("w1.log_scale")).initial;
  EXPECT_NEAR(std::exp(w->as<float>()[0]), 2 * 0.04 / std::sqrt(127.0), 1e-6);
}

TEST(StartQuantizers, LeavesWhatThePhaseBeforeHad) {
  Graph graph = SmallCnn();
  ValueReader before =
      Before(graph, {{"w2.codebook", models::ScalarTensor(0)},
                     {"w1.codebook", models::ScalarTensor(0)},
                     {"w3.codebook", models::ScalarTensor(0)}});
  QuantizeSpec spec;
  spec.quantizer = Quantizer::kKMeans;
  const auto tensors = Quantize(graph, QuantizeStage::kTrain, spec);
  ASSERT_TRUE(StartQuantizers(tensors, before, graph).ok());
  for (float x : graph.value(*graph.Find("w2.codebook")).initial->as<float>()) {
    EXPECT_EQ(x, 0);
  }
}

TEST(StartQuantizers, RefusesNumbersThatAreNotFinite) {
  Graph graph = SmallCnn();
  const ValueReader before = Before(graph);
  const ValueReader diverged =
      [&](absl::string_view name) -> std::optional<Tensor> {
    std::optional<Tensor> tensor = before(name);
    if (name != "w2") return tensor;
    std::vector<float> numbers(tensor->as<float>().begin(),
                               tensor->as<float>().end());
    numbers.back() = std::nanf("");
    return models::MakeTensor(tensor->type, numbers.data());
  };
  QuantizeSpec spec;
  spec.quantizer = Quantizer::kKMeans;
  const auto tensors = Quantize(graph, QuantizeStage::kTrain, spec);
  const absl::Status status = StartQuantizers(tensors, diverged, graph);
  EXPECT_THAT(status.message(), HasSubstr("'w2' has numbers that are not"));
}

TEST(StartQuantizers, NamesAMissingRange) {
  Graph graph = SmallCnn();
  QuantizeSpec spec;
  spec.quantizer = Quantizer::kLsq;
  const ValueReader before = Before(graph);
  const auto tensors = Quantize(graph, QuantizeStage::kTrain, spec);
  const absl::Status status = StartQuantizers(tensors, before, graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(".low"));
}

}  // namespace
}  // namespace loadline::passes
