// Helpers for tests; see graphs.h.
#include "tests/passes/graphs.h"

#include <gtest/gtest.h>

#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/rewrite.h"

namespace loadline::passes {

using models::Graph;
using models::Node;
using models::ValueId;

ValueId Builder::Input(absl::string_view name, std::vector<int64_t> dims,
                       models::DType dtype) {
  return graph.AddInput(name, {dtype, std::move(dims)});
}

static models::Tensor Ramp(std::vector<int64_t> dims) {
  models::TensorType type{models::DType::kF32, std::move(dims)};
  std::vector<float> contents(static_cast<size_t>(type.elements()));
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = 0.01f * i;
  return models::MakeTensor(type, contents.data());
}

ValueId Builder::Parameter(absl::string_view name, std::vector<int64_t> dims) {
  return graph.AddParameter(name, Ramp(std::move(dims)));
}

ValueId Builder::State(absl::string_view name, std::vector<int64_t> dims) {
  return graph.AddState(name, Ramp(std::move(dims)));
}

ValueId Builder::Scalar(float value) {
  return graph.AddConstant(absl::StrCat("c", constants_++),
                           models::ScalarTensor(value));
}

std::vector<ValueId> Builder::Ops(absl::string_view op,
                                  std::vector<ValueId> inputs,
                                  models::Attributes attributes) {
  absl::StatusOr<std::vector<ValueId>> outputs =
      graph.AddNode(op, absl::StrCat("n", graph.nodes.size()),
                    std::move(inputs), std::move(attributes));
  EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
  return outputs.ok() ? *outputs : std::vector<ValueId>(4, ValueId{0});
}

ValueId Builder::Op(absl::string_view op, std::vector<ValueId> inputs,
                    models::Attributes attributes) {
  return Ops(op, std::move(inputs), std::move(attributes))[0];
}

static std::string AttributeText(const models::Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, models::Ints>) {
          return absl::StrCat("[", absl::StrJoin(value, ","), "]");
        } else {
          return absl::StrCat(value);
        }
      },
      attribute);
}

std::string Describe(const Graph& graph) {
  std::map<ValueId, std::string> made;
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.outputs) {
      made[id] = absl::StrCat("%", made.size());
    }
  }
  const auto name = [&](std::string* out, ValueId id) {
    if (id == models::kNoValue) {
      absl::StrAppend(out, "_");
    } else if (const auto number = ScalarConstant(graph, id)) {
      absl::StrAppend(out, *number);
    } else {
      const auto found = made.find(id);
      absl::StrAppend(
          out, found == made.end() ? graph.value(id).name : found->second);
    }
  };
  std::string text;
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, absl::StrJoin(node.outputs, ", ", name), " = ",
                    node.op, "(", absl::StrJoin(node.inputs, ", ", name), ")");
    if (!node.attributes.map().empty()) {
      absl::StrAppend(&text, " {",
                      absl::StrJoin(node.attributes.map(), ", ",
                                    [](std::string* out, const auto& entry) {
                                      absl::StrAppend(
                                          out, entry.first, "=",
                                          AttributeText(entry.second));
                                    }),
                      "}");
    }
    absl::StrAppend(&text, "\n");
  }
  for (ValueId id : graph.outputs) {
    absl::StrAppend(&text, "output ");
    name(&text, id);
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [state, next] : graph.updates) {
    absl::StrAppend(&text, "update ");
    name(&text, state);
    absl::StrAppend(&text, " -> ");
    name(&text, next);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

void ExpectBecomes(absl::Status (*pass)(Graph&), Graph& graph,
                   absl::string_view description) {
  ASSERT_TRUE(pass(graph).ok());
  EXPECT_EQ(Describe(graph), description);
  EXPECT_TRUE(models::VerifyGraph(graph).ok());
}

void ExpectUntouched(absl::Status (*pass)(Graph&), Graph& graph) {
  const std::string before = Describe(graph);
  ASSERT_TRUE(pass(graph).ok());
  EXPECT_EQ(Describe(graph), before);
}

Graph SmallMlp() {
  Builder b;
  b.graph.name = "mlp";
  const ValueId x = b.Input("x", {4, 8});
  const ValueId h = b.Op(
      "Gemm",
      {x, b.Parameter("fc1.weight", {16, 8}), b.Parameter("fc1.bias", {16})},
      {{"transB", int64_t{1}}});
  const ValueId r = b.Op("Relu", {h});
  b.Output(b.Op(
      "Gemm",
      {r, b.Parameter("fc2.weight", {10, 16}), b.Parameter("fc2.bias", {10})},
      {{"transB", int64_t{1}}}));
  return b.graph;
}

models::Graph BatchNormModel(int64_t batch) {
  Builder b;
  const models::ValueId x = b.Input("x", {batch, 3});
  const models::ValueId mean = b.State("mean", {3});
  const models::ValueId variance = b.State("variance", {3});
  const auto y = b.Ops("BatchNormTraining",
                       {x, b.Parameter("scale", {3}), b.Parameter("bias", {3})},
                       {{"epsilon", 1e-5}});
  const auto next =
      b.Ops("RunningStatsUpdate", {mean, variance, y[1], y[2]},
            {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", batch}});
  b.graph.updates = {{mean, next[0]}, {variance, next[1]}};
  b.Output(b.Op("MatMul", {y[0], b.Parameter("w", {3, 2})}));
  return std::move(b.graph);
}

}  // namespace loadline::passes
