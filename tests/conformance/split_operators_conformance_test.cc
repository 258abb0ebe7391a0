// Every kind of chain, forward and gradient, in 1 to 7 segments against the
// whole operators, on the CPU and on the emulated GPU.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "passes/split_operators.h"
#include "passes/training_pipeline.h"
#include "planner/base/check.h"
#include "tests/conformance/cuda_emulated.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::Graph;
using models::Ints;
using models::ValueId;

class Model {
 public:
  ValueId Input(const char* name, DType dtype, Ints dims) {
    return graph.AddInput(name, {dtype, std::move(dims)});
  }
  ValueId Parameter(Ints dims) {
    models::TensorType type{DType::kF32, std::move(dims)};
    std::vector<float> values(static_cast<size_t>(type.elements()));
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    for (float& value : values) value = uniform(random_);
    return graph.AddParameter("p", models::MakeTensor(type, values.data()));
  }
  ValueId Op(const char* op, std::vector<ValueId> inputs,
             models::Attributes attributes = {}) {
    auto made = graph.AddNode(op, "n", std::move(inputs), attributes);
    LOADLINE_CHECK(made.ok());
    return (*made)[0];
  }
  ValueId Linear(ValueId x, int64_t from, int64_t to) {
    return Op("Add",
              {Op("MatMul", {x, Parameter({from, to})}), Parameter({to})});
  }
  ValueId Norm(ValueId x, int64_t axis, int64_t width) {
    return Op("LayerNormalization", {x, Parameter({width}), Parameter({width})},
              {{"axis", axis}, {"epsilon", 1e-5}});
  }

  Graph graph;

 private:
  std::mt19937_64 random_{11};
};

struct Net {
  std::string kind;  // of the chain that it is about
  Graph graph;
  models::TensorType target;
  int64_t classes;
  double label_smoothing = 0;
};

// 3 x 7 tokens, 37 words.
Net HeadNet() {
  Model m;
  const ValueId x = m.Input("x", DType::kF32, {3, 7, 8});
  m.graph.outputs = {m.Op("MatMul", {m.Norm(x, 2, 8), m.Parameter({8, 64})})};
  return {"head", std::move(m.graph), {DType::kI64, {3, 7}}, 64};
}

Net HeadWithBiasNet() {
  Model m;
  const ValueId x = m.Input("x", DType::kF32, {130, 16});
  m.graph.outputs = {m.Linear(m.Norm(x, 1, 16), 16, 200)};
  return {"head", std::move(m.graph), {DType::kI64, {130}}, 200};
}

Net SmoothedHeadNet() {
  Net net = HeadWithBiasNet();
  net.label_smoothing = 0.1;
  return net;
}

Net MlpNet(const char* curve) {
  Model m;
  ValueId x = m.Norm(m.Input("x", DType::kF32, {3, 7, 16}), 2, 16);
  const ValueId h = m.Op(curve, {m.Linear(x, 16, 64)});
  x = m.Norm(m.Op("Add", {x, m.Linear(h, 64, 16)}), 2, 16);
  m.graph.outputs = {m.Linear(x, 16, 5)};
  return {"mlp", std::move(m.graph), {DType::kI64, {3, 7}}, 5};
}

// Queries, keys and values of 2 heads, written out; fused by the pipeline.
Net AttentionNet(bool fused) {
  Model m;
  const ValueId x = m.Norm(m.Input("x", DType::kF32, {7, 6, 8}), 2, 8);
  // One product for all three, as GPT has it.
  auto split =
      m.graph.AddNode("Split", "n", {m.Linear(x, 8, 24)},
                      {{"axis", int64_t{2}}, {"sizes", Ints{8, 8, 8}}});
  LOADLINE_CHECK(split.ok());
  std::vector<ValueId> qkv = *split;
  for (ValueId& id : qkv) {
    id = m.Op("Reshape", {id}, {{"shape", Ints{7, 6, 2, 4}}});
  }
  ValueId y{};
  if (fused) {
    y = m.Op(
        "Attention", qkv,
        {{"scale", 0.5}, {"causal", int64_t{1}}, {"interleaved", int64_t{1}}});
  } else {
    for (ValueId& id : qkv) {
      id = m.Op("Transpose", {id}, {{"perm", Ints{0, 2, 1, 3}}});
    }
    const ValueId scores =
        m.Op("MatMul", {qkv[0], qkv[1]}, {{"trans_b", int64_t{1}}});
    y = m.Op("MatMul",
             {m.Op("Softmax", {scores}, {{"axis", int64_t{3}}}), qkv[2]});
    y = m.Op("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}});
  }
  y = m.Linear(m.Op("Reshape", {y}, {{"shape", Ints{7, 6, 8}}}), 8, 8);
  m.graph.outputs = {m.Linear(m.Norm(m.Op("Add", {x, y}), 2, 8), 8, 5)};
  return {"attention", std::move(m.graph), {DType::kI64, {7, 6}}, 5};
}

Net ConvNet() {
  Model m;
  const ValueId x = m.Input("x", DType::kF32, {7, 2, 12, 12});
  const models::Attributes same = {{"kernel_shape", Ints{3, 3}},
                                   {"pads", Ints{1, 1, 1, 1}}};
  const ValueId c = m.Op(
      "Relu",
      {m.Op("Conv", {x, m.Parameter({8, 2, 3, 3}), m.Parameter({8})}, same)});
  const ValueId pooled = m.Op(
      "MaxPool", {c}, {{"kernel_shape", Ints{4, 4}}, {"strides", Ints{4, 4}}});
  m.graph.outputs = {
      m.Linear(m.Op("Reshape", {pooled}, {{"shape", Ints{7, 72}}}), 72, 5)};
  return {"conv", std::move(m.graph), {DType::kI64, {7}}, 5};
}

// Loss, and the gradient of every parameter by its name.
std::map<std::string, Array> Results(const Graph& step,
                                     const std::vector<Array>& inputs,
                                     const Backend& backend) {
  std::map<std::string, Array> results;
  const auto values = RunGraph(step, inputs, backend);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return results;
  results["loss"] = (*values)[models::Index(step.outputs[0])];
  for (const models::Node& node : step.nodes) {
    if (node.op != "Sgd") continue;
    results[step.value(node.inputs[0]).name] =
        (*values)[models::Index(node.inputs[1])];
  }
  return results;
}

std::vector<Array> MakeInputs(const Graph& step, const Net& net) {
  std::mt19937_64 random(5);
  std::vector<Array> inputs;
  for (ValueId id : step.inputs) {
    Array a{step.value(id).type, {}};
    a.values.resize(static_cast<size_t>(a.type.elements()));
    for (size_t i = 0; i < a.values.size(); ++i) {
      a.values[i] = a.type.dtype == DType::kF32
                        ? static_cast<float>(
                              std::uniform_real_distribution<>(-1, 1)(random))
                        : static_cast<double>(
                              random() % static_cast<uint64_t>(net.classes));
      // Some targets do not count, and in three segments and more none of the
      // first one does.
      if (a.type.dtype == DType::kI64 &&
          (i % 4 == 2 || i < a.values.size() * 2 / 5)) {
        a.values[i] = -100;
      }
    }
    inputs.push_back(std::move(a));
  }
  return inputs;
}

double Largest(const Array& a) {
  double largest = 0;
  for (double value : a.values) largest = std::max(largest, std::fabs(value));
  return largest;
}

void ExpectSameInSegments(const Net& net, passes::Precision precision,
                          const Backend& backend, double tolerance,
                          int64_t most) {
  SCOPED_TRACE(net.kind);
  passes::TrainingOptions options;
  options.loss.target = net.target;
  options.loss.label_smoothing = net.label_smoothing;
  options.optimizer.kind = passes::OptimizerKind::kSgd;
  options.precision = precision;
  const auto whole = passes::BuildTrainingStep(net.graph, options, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::vector<Array> inputs = MakeInputs(*whole, net);
  const auto want = Results(*whole, inputs, backend);
  for (int64_t segments = 1; segments <= most; ++segments) {
    SCOPED_TRACE(segments);
    options.splits = {{net.kind, segments}};
    const auto step = passes::BuildTrainingStep(net.graph, options, {});
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->nodes.size() > whole->nodes.size(), segments > 1);
    const auto got = Results(*step, inputs, backend);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, array] : want) {
      const Array& other = got.at(name);
      ASSERT_EQ(other.type, array.type) << name;
      const double allowed = tolerance * Largest(array);
      for (size_t i = 0; i < array.values.size(); ++i) {
        ASSERT_LE(std::fabs(other.values[i] - array.values[i]), allowed)
            << name << " at " << i;
      }
      // Rows do not depend on each other, and their sum has one order.
      if (name == "loss" && tolerance < 1e-5) {
        EXPECT_NEAR(other.values[0], array.values[0], allowed / 8);
      }
    }
  }
}

std::vector<Net> Nets() {
  return {HeadNet(),           HeadWithBiasNet(),  SmoothedHeadNet(),
          MlpNet("Gelu"),      MlpNet("Softplus"), AttentionNet(true),
          AttentionNet(false), ConvNet()};
}

TEST(SplitOperators, EveryChainGivesTheSameInOneToSevenSegments) {
  for (const Net& net : Nets()) {
    ExpectSameInSegments(net, passes::Precision::kF32, kCpu, 1e-6, 7);
  }
}

TEST(SplitOperators, InBf16SumsAreAsExactAsWhole) {
  for (const Net& net : Nets()) {
    ExpectSameInSegments(net, passes::Precision::kBF16, kCpu, 1.0 / 128, 4);
  }
}

TEST(SplitOperators, EveryChainGivesTheSameOnAGpu) {
  for (const Net& net : Nets()) {
    ExpectSameInSegments(net, passes::Precision::kF32, kEmulated, 1e-6, 3);
    ExpectSameInSegments(net, passes::Precision::kBF16, kEmulated, 1.0 / 128,
                         2);
  }
}

}  // namespace
}  // namespace loadline::conformance
