#include "passes/cut_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "passes/add_optimizer.h"
#include "passes/make_problem.h"
#include "planner/verify/verify.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// y = x w, and an update of w by the gradient g. What the product needs at one
// moment is 4 (256 rows + rows columns + 256 columns) bytes.
struct Step {
  Builder b;

  explicit Step(OptimizerKind kind, int64_t rows = 200, int64_t columns = 3,
                double average = 0, int64_t state_bits = 32) {
    const ValueId w = b.Parameter("w", {rows, columns});
    b.Output(b.Op("MatMul", {b.Input("x", {1, rows}), w}));
    OptimizerOptions options;
    options.kind = kind;
    options.momentum = 0.5;
    options.average = average;
    options.state_bits = state_bits;
    EXPECT_TRUE(
        AddOptimizer(b.graph, {{w, b.Input("g", {rows, columns})}}, options)
            .ok());
  }

  absl::Status Cut(int64_t part_bytes) {
    const absl::Status status = CutUpdates(b.graph, part_bytes);
    if (status.ok()) return models::VerifyGraph(b.graph);
    return status;
  }
  std::vector<std::string> StateNames() const {
    std::vector<std::string> names;
    for (const models::Value& value : b.graph.values) {
      if (value.kind == models::ValueKind::kState) names.push_back(value.name);
    }
    return names;
  }
};

TEST(CutUpdates, UpdatesOnePartOfTheRowsAfterTheOther) {
  Step step(OptimizerKind::kSgd);
  // 2,400 bytes of momentum; parts begin at multiples of 64 rows.
  ASSERT_TRUE(step.Cut(800).ok());
  EXPECT_EQ(Describe(step.b.graph),
            R"(%0 = MatMul(x, w)
%1, %2 = Sgd(w, g, w.momentum[1/3]) {momentum=0.5, nesterov=0, start=0, weight_decay=0}
%3, %4 = Sgd(%1, g, w.momentum[2/3]) {momentum=0.5, nesterov=0, start=192, weight_decay=0}
%5, %6 = Sgd(%3, g, w.momentum[3/3]) {momentum=0.5, nesterov=0, start=384, weight_decay=0}
output %0
update w -> %5
update w.momentum[1/3] -> %2
update w.momentum[2/3] -> %4
update w.momentum[3/3] -> %6
)");
}

TEST(CutUpdates, CutsEveryStateOfEveryOptimizer) {
  for (OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    Step step(kind);
    ASSERT_TRUE(step.Cut(1200).ok());
    EXPECT_THAT(step.StateNames(),
                ElementsAre("w.exp_avg[1/2]", "w.exp_avg_sq[1/2]",
                            "w.exp_avg[2/2]", "w.exp_avg_sq[2/2]"));
  }
  Step adagrad(OptimizerKind::kAdagrad), lion(OptimizerKind::kLion);
  ASSERT_TRUE(adagrad.Cut(1200).ok());
  ASSERT_TRUE(lion.Cut(1200).ok());
  EXPECT_THAT(adagrad.StateNames(), ElementsAre("w.sum[1/2]", "w.sum[2/2]"));
  EXPECT_THAT(lion.StateNames(),
              ElementsAre("w.exp_avg[1/2]", "w.exp_avg[2/2]"));
}

TEST(CutUpdates, KeepsTheContentsOfStates) {
  Step step(OptimizerKind::kSgd);
  models::Value& state = step.b.graph.value(*step.b.graph.Find("w.momentum"));
  std::vector<float> numbers(600);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i);
  state.initial = models::MakeTensor(state.type, numbers.data());
  ASSERT_TRUE(step.Cut(1200).ok());
  size_t next = 0;
  for (const std::string& name : step.StateNames()) {
    const auto id = step.b.graph.Find(name);
    for (float x : step.b.graph.value(*id).initial->as<float>()) {
      EXPECT_EQ(x, numbers[next++]);
    }
  }
  EXPECT_EQ(next, numbers.size());
}

// 1,400 rows of 3 are 4,200 elements and 17 blocks; a row is no whole number of
// them, and 256 rows are three.
TEST(CutUpdates, CutsStatesIn8BitsBetweenBlocks) {
  Step step(OptimizerKind::kSgd, 1400, 3, 0, /*state_bits=*/8);
  models::Value& state = step.b.graph.value(*step.b.graph.Find("w.momentum"));
  ASSERT_EQ(state.type.ToString(), "u8[17,260]");
  std::vector<uint8_t> bytes(17 * 260);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 251;
  state.initial = models::MakeTensor(state.type, bytes.data());
  ASSERT_TRUE(step.Cut(1000).ok());
  EXPECT_THAT(step.StateNames(),
              ElementsAre("w.momentum[1/4]", "w.momentum[2/4]",
                          "w.momentum[3/4]", "w.momentum[4/4]"));
  std::vector<uint8_t> joined;
  int64_t start = 0;
  for (const models::Node& node : step.b.graph.nodes) {
    if (node.op != "Sgd") continue;
    EXPECT_EQ(node.attributes.Int("start", -1), start);
    const models::Value& part = step.b.graph.value(node.inputs[2]);
    start += part.type.dims[0] * 256;
    const auto contents = part.initial->as<uint8_t>();
    joined.insert(joined.end(), contents.begin(), contents.end());
  }
  EXPECT_EQ(joined, bytes);
}

TEST(CutUpdates, PartsReadTheGradientAndTheAverageReadsTheLastOne) {
  Step step(OptimizerKind::kSgd, 200, 3, /*average=*/0.5);
  ASSERT_TRUE(step.Cut(1200).ok());
  const models::Graph& graph = step.b.graph;
  const models::Node& average = graph.nodes.back();
  EXPECT_EQ(average.op, "AverageUpdate");
  const models::Node& last = graph.nodes[graph.nodes.size() - 2];
  EXPECT_EQ(average.inputs[1], last.outputs[0]);
  EXPECT_EQ(last.attributes.Int("start", 0), 64 * 3);
}

TEST(CutUpdates, LeavesWhatNeedsNoMoreThanAnotherNode) {
  // The update needs 3 x 60,000 bytes, and the product 60,000 + 4 x 5,003.
  Step narrow(OptimizerKind::kSgd, 5000, 3);
  ASSERT_TRUE(narrow.Cut(100).ok());
  EXPECT_THAT(narrow.StateNames(), SizeIs(kMostUpdateParts));

  Step whole(OptimizerKind::kSgd, 5000, 3);
  whole.b.Output(whole.b.Op(
      "Concat", {whole.b.Input("large", {22500}), whole.b.Input("l2", {22500})},
      {{"axis", int64_t{0}}}));
  ASSERT_TRUE(whole.Cut(1000).ok());
  EXPECT_THAT(whole.StateNames(), ElementsAre("w.momentum"));
}

TEST(CutUpdates, LeavesSmallStatesAndFewRows) {
  Step small(OptimizerKind::kAdamW), flat(OptimizerKind::kAdamW, 100, 5000);
  ASSERT_TRUE(small.Cut(1201).ok());
  ASSERT_TRUE(flat.Cut(1000).ok());
  EXPECT_THAT(small.StateNames(), ElementsAre("w.exp_avg", "w.exp_avg_sq"));
  EXPECT_THAT(flat.StateNames(), ElementsAre("w.exp_avg", "w.exp_avg_sq"));
}

TEST(CutUpdates, MakesVersionsOfTheParameterInTheProblem) {
  Step step(OptimizerKind::kSgd);
  ASSERT_TRUE(step.Cut(800).ok());
  MakeProblemOptions options;
  options.cost = [](const models::Graph&, const models::Node&) {
    return NodeCost{};
  };
  const auto problem = MakeProblem(step.b.graph, options);
  ASSERT_TRUE(problem.ok()) << problem.status();
  int updates = 0;
  for (const planner::Node& node : problem->nodes) {
    if (node.recompute) continue;
    ++updates;
    // The parameter and its state.
    EXPECT_THAT(node.inplace, SizeIs(2)) << node.name;
    EXPECT_TRUE(problem->values[Index(node.inplace[0].second)].persistent);
  }
  EXPECT_EQ(updates, 3);
}

}  // namespace
}  // namespace loadline::passes
