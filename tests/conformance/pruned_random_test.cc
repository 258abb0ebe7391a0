// Random networks of what relates channels: convolutions with groups, sums,
// joins, splits, slices, shuffles, gates, normalizations, attention. Whatever
// is removed, the rest computes what it computed with those channels masked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"
#include "models/text.h"
#include "passes/compress/mask_channels.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::Graph;
using models::Ints;
using models::ValueId;

constexpr int64_t kExamples = 2, kSide = 3;

class RandomNet {
 public:
  explicit RandomNet(uint64_t seed) : random_(seed) {}

  Graph Make() {
    values_ = {graph_.AddInput(
        "x", {models::DType::kF32, {kExamples, 3, kSide, kSide}})};
    values_ = {Conv(values_[0], 8, 1), Conv(values_[0], 8, 1)};
    for (int i = 0; i < 10; ++i) values_.push_back(Step());
    // Every value reaches the output, the last ones through several layers.
    ValueId sum = Conv(values_.back(), 5, 1);
    for (ValueId x : values_) sum = Op("Add", {sum, Conv(x, 5, 1)});
    graph_.outputs = {sum};
    return std::move(graph_);
  }

 private:
  int64_t Pick(int64_t count) {
    return std::uniform_int_distribution<int64_t>(0, count - 1)(random_);
  }
  const Ints& Dims(ValueId x) const { return graph_.value(x).type.dims; }
  int64_t Channels(ValueId x) const { return Dims(x)[1]; }
  ValueId Op(const char* op, std::vector<ValueId> inputs,
             models::Attributes attributes = {}) {
    return Ops(op, std::move(inputs), std::move(attributes))[0];
  }
  std::vector<ValueId> Ops(const char* op, std::vector<ValueId> inputs,
                           models::Attributes attributes = {}) {
    auto outputs =
        graph_.AddNode(op, op, std::move(inputs), std::move(attributes));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? *outputs : std::vector<ValueId>(2, ValueId{0});
  }
  ValueId Weight(Ints dims) {
    const models::TensorType type{models::DType::kF32, std::move(dims)};
    std::vector<float> contents(static_cast<size_t>(type.elements()));
    std::uniform_real_distribution<float> number(-1, 1);
    for (float& x : contents) x = number(random_);
    return graph_.AddParameter("w", models::MakeTensor(type, contents.data()));
  }
  ValueId Conv(ValueId x, int64_t out, int64_t groups) {
    return Op("Conv",
              {x, Weight({out, Channels(x) / groups, 1, 1}), Weight({out})},
              {{"kernel_shape", Ints{1, 1}},
               {"strides", Ints{1, 1}},
               {"pads", Ints{0, 0, 0, 0}},
               {"dilations", Ints{1, 1}},
               {"group", groups}});
  }
  ValueId Any() {
    return values_[static_cast<size_t>(
        Pick(static_cast<int64_t>(values_.size())))];
  }
  // A value with as many channels as x; made of another one if need be.
  ValueId Like(ValueId x) {
    const ValueId y = Any();
    return Channels(x) == Channels(y) ? y : Conv(y, Channels(x), 1);
  }
  ValueId Reshape(ValueId x, Ints shape) {
    return Op("Reshape", {x}, {{"shape", std::move(shape)}});
  }

  ValueId Step() {
    const ValueId x = Any();
    const int64_t c = Channels(x);
    switch (Pick(14)) {
      case 0:
        return Conv(x, 4 * (1 + Pick(3)), 1);
      case 1:  // two groups, four, or one for each channel
        return c % 4 == 0 ? Conv(x, 2 * c, c % 8 == 0 && Pick(2) == 0 ? c : 2)
                          : x;
      case 2:
        return c % 4 == 0 ? Conv(x, 8, 4) : x;
      case 3:
        return Op("Add", {x, Like(x)});
      case 4:
        return Op("Mul", {x, Op("Sigmoid", {Like(x)})});
      case 5:
        return c > 24 ? x : Op("Concat", {x, Any(), x}, {{"axis", int64_t{1}}});
      case 6:
        return Op("Relu", {x});
      case 7: {
        const auto parts =
            Ops("Split", {x},
                {{"axis", int64_t{1}}, {"sizes", Ints{c / 2, c - c / 2}}});
        return Op("Concat", {parts[1], parts[0]}, {{"axis", int64_t{1}}});
      }
      case 8:
        return Op("Slice", {x},
                  {{"starts", Ints{c / 4}},
                   {"ends", Ints{c - c / 4}},
                   {"axes", Ints{1}},
                   {"steps", Ints{1}}});
      case 9: {  // zeros before and after
        return c > 24 ? x
                      : Op("SliceGrad", {x},
                           {{"starts", Ints{1}},
                            {"ends", Ints{1 + c}},
                            {"axes", Ints{1}},
                            {"steps", Ints{1}},
                            {"shape", Ints{kExamples, c + 3, kSide, kSide}}});
      }
      case 10: {  // shuffle
        if (c % 2 != 0) return x;
        const ValueId y =
            Op("Transpose", {Reshape(x, {kExamples, 2, c / 2, kSide, kSide})},
               {{"perm", Ints{0, 2, 1, 3, 4}}});
        return Reshape(y, {kExamples, c, kSide, kSide});
      }
      case 11:
        return Op("BatchNormTraining", {x, Weight({c}), Weight({c})},
                  {{"epsilon", 1e-5}});
      case 12: {  // squeeze, excite
        const ValueId mean =
            Op("ReduceMean", {x},
               {{"axes", Ints{2, 3}}, {"keepdims", int64_t{1}}});
        const ValueId inner = Op("Relu", {Conv(mean, 4, 1)});
        return Op("Mul", {x, Op("Sigmoid", {Conv(inner, c, 1)})});
      }
      default: {  // attention over positions, with heads of channels
        if (c % 4 != 0) return x;
        const ValueId q = Heads(Conv(x, c, 1)), k = Heads(Conv(x, c, 1));
        const ValueId scores = Op("MatMul", {q, k}, {{"trans_a", int64_t{1}}});
        const ValueId p = Op("Softmax", {scores}, {{"axis", int64_t{3}}});
        const ValueId y =
            Op("MatMul", {Heads(x), p}, {{"trans_b", int64_t{1}}});
        return Reshape(y, {kExamples, c, kSide, kSide});
      }
    }
  }
  // [B, C, H, W] -> [B, heads, C / heads, H * W]
  ValueId Heads(ValueId x) {
    return Reshape(x, {kExamples, 4, Channels(x) / 4, kSide * kSide});
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

std::vector<double> Output(const Graph& graph) {
  Array x{graph.value(graph.inputs[0]).type, {}};
  std::mt19937 random(3);
  std::uniform_real_distribution<float> number(-1, 1);
  x.values.resize(static_cast<size_t>(x.type.elements()));
  for (double& v : x.values) v = number(random);
  const auto values = RunGraph(graph, {x});
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? (*values)[models::Index(graph.outputs[0])].values
                     : std::vector<double>{};
}

struct Tried {
  int groups = 0, exact = 0, channels = 0;
};

// Removes random channels and compares with masking them.
void Try(uint64_t seed, Tried* tried) {
  SCOPED_TRACE(seed);
  const Graph graph = RandomNet(seed).Make();
  const auto groups = passes::FindPruneGroups(graph);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::mt19937_64 random(seed);
  std::vector<std::vector<int64_t>> removed;
  for (const passes::PruneGroup& group : *groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    if (!group.frozen.empty()) continue;
    ++tried->groups;
    if (!group.approximate.empty()) continue;
    ++tried->exact;
    channels.resize(static_cast<size_t>(group.width));
    std::iota(channels.begin(), channels.end(), 0);
    std::shuffle(channels.begin(), channels.end(), random);
    channels.resize(static_cast<size_t>(
        std::uniform_int_distribution<int64_t>(0, group.width - 1)(random)));
    tried->channels += static_cast<int>(channels.size());
  }
  const auto pruned = passes::PruneGraph(graph, *groups, removed);
  ASSERT_TRUE(pruned.ok()) << pruned.status() << models::GraphToText(graph);
  const auto masked = Output(passes::MaskChannels(graph, *groups, removed));
  const auto got = Output(pruned->graph);
  ASSERT_EQ(masked.size(), got.size());
  double largest = 0;
  for (double v : masked) largest = std::max(largest, std::fabs(v));
  ASSERT_GT(largest, 0);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], masked[i], 1e-5 * largest)
        << models::GraphToText(graph);
  }
}

TEST(PrunedRandom, MaskedIsRemoved) {
  Tried tried;
  for (uint64_t seed = 0; seed < 30 && !HasFailure(); ++seed) {
    Try(seed, &tried);
  }
  // Not for lack of anything to remove.
  EXPECT_GT(tried.exact, tried.groups * 3 / 4);
  EXPECT_GT(tried.groups, 100);
  EXPECT_GT(tried.channels, 200);
}

}  // namespace
}  // namespace loadline::conformance
