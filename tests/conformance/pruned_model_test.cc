// Every way in which channels depend on each other: what pruning leaves is the
// network built small, and a network with masked channels computes the same
// bits as the one without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/text.h"
#include "passes/compress/mask_channels.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/prune_cases.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::conformance {
namespace {

using models::Graph;
using models::Value;
using models::ValueKind;
using passes::PruneGroup;

class PrunedModel : public ::testing::TestWithParam<size_t> {
 protected:
  const PruneCase& the_case() const { return PruneCases()[GetParam()]; }

  Graph Import(Width width) const {
    models::ImportOptions options;
    options.training = training_;
    options.train = the_case().train;
    auto imported = models::ImportOnnxBytes(
        models::Bytes(PruneModel(the_case(), width)), options);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? imported->graph : Graph{};
  }

  // Half of the channels of every group that may be pruned, at random.
  std::vector<std::vector<int64_t>> Half(
      const std::vector<PruneGroup>& groups) {
    std::vector<std::vector<int64_t>> removed;
    for (const PruneGroup& group : groups) {
      std::vector<int64_t>& channels = removed.emplace_back();
      if (!group.frozen.empty()) continue;
      channels.resize(static_cast<size_t>(group.width));
      std::iota(channels.begin(), channels.end(), 0);
      std::shuffle(channels.begin(), channels.end(), random_);
      channels.resize(channels.size() / 2);
    }
    return removed;
  }

  std::mt19937 random_{7};
  bool training_ = true;
};

// Types, operators and attributes, without contents of parameters and states.
std::string Structure(Graph graph) {
  for (Value& value : graph.values) {
    if (value.initial.has_value() && value.kind != ValueKind::kConstant) {
      value.initial = models::ZeroTensor(value.type);
    }
  }
  return models::GraphToText(graph);
}

std::vector<double> Outputs(const Graph& graph) {
  std::vector<Array> given;
  std::mt19937 random(3);
  for (models::ValueId id : graph.inputs) {
    const bool whole = graph.value(id).type.dtype != models::DType::kF32;
    std::uniform_int_distribution<int> number(whole ? 0 : -2, whole ? 5 : 2);
    Array array{graph.value(id).type, std::vector<double>(static_cast<size_t>(
                                          graph.value(id).type.elements()))};
    for (double& value : array.values) value = number(random);
    given.push_back(std::move(array));
  }
  const auto values = RunGraph(graph, given);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  std::vector<double> outputs;
  for (models::ValueId id : graph.outputs) {
    const std::vector<double>& one = (*values)[models::Index(id)].values;
    outputs.insert(outputs.end(), one.begin(), one.end());
  }
  return outputs;
}

// Whether products add up numbers that are no whole ones. Then the bits depend
// on the order of the sum, which a shorter sum may have otherwise: so it is
// with AVX2.
bool RoundsSums(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const models::Node& node) {
                       return node.op == "Softmax" || node.op == "Tanh";
                     });
}

TEST_P(PrunedModel, IsTheModelBuiltSmall) {
  const Graph wide = Import(Width::kWide);
  const auto groups = passes::FindPruneGroups(wide);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::vector<int64_t> widths;
  bool approximate = false;
  for (const PruneGroup& group : *groups) {
    if (!group.frozen.empty()) continue;
    widths.push_back(group.width);
    approximate = approximate || !group.approximate.empty();
  }
  EXPECT_EQ(widths, the_case().widths);
  EXPECT_EQ(approximate, the_case().approximate);
  const auto pruned = passes::PruneGraph(wide, *groups, Half(*groups));
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(Structure(pruned->graph), Structure(Import(Width::kNarrow)));
}

TEST_P(PrunedModel, ComputesTheBitsOfTheMaskedModel) {
  if (the_case().approximate) GTEST_SKIP() << "statistics change";
  for (const bool training : {true, false}) {
    training_ = training;
    const Graph wide = Import(Width::kWide);
    const auto groups = passes::FindPruneGroups(wide);
    ASSERT_TRUE(groups.ok()) << groups.status();
    const auto removed = Half(*groups);
    const auto pruned = passes::PruneGraph(wide, *groups, removed);
    ASSERT_TRUE(pruned.ok()) << pruned.status();
    const std::vector<double> masked =
        Outputs(passes::MaskChannels(wide, *groups, removed));
    const std::vector<double> removed_outputs = Outputs(pruned->graph);
    if (RoundsSums(wide)) {
      EXPECT_THAT(removed_outputs,
                  ::testing::Pointwise(::testing::DoubleNear(1e-4), masked));
    } else {
      EXPECT_EQ(removed_outputs, masked);
    }
    EXPECT_NE(masked, Outputs(wide));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PrunedModel,
                         ::testing::Range<size_t>(0, PruneCases().size()),
                         [](const auto& info) {
                           return PruneCases()[info.param].name;
                         });

}  // namespace
}  // namespace loadline::conformance
