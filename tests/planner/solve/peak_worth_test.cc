// What a plan keeps where bytes are short, and what it does not.
#include "planner/solve/peak_worth.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/solve/choose_lossy.h"
#include "planner/solve/solve.h"

namespace loadline::planner {
namespace {

ValueId V(int v) { return ValueId{v}; }

Value Of(int64_t bytes) {
  Value value;
  value.bytes = bytes;
  value.stash = {{"half", bytes / 2, 1, 1, false, 0.9}};
  return value;
}

Node Run(std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node node;
  node.time_ns = 10;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

// 0 waits while 2 is made from 1, which is the peak; 3 waits only afterwards.
Problem Waiting() {
  Problem problem;
  problem.alignment_bytes = 1;
  problem.values = {Of(1000), Of(4000), Of(4000), Of(2000), Of(10), Of(10)};
  problem.nodes = {Run({}, {V(0)}),     Run({}, {V(1)}),
                   Run({V(1)}, {V(2)}), Run({V(2)}, {V(3)}),
                   Run({}, {V(4)}),     Run({V(0), V(3), V(4)}, {V(5)})};
  problem.outputs = {V(5)};
  for (size_t v = 0; v < problem.values.size(); ++v) {
    problem.values[v].file_id = static_cast<int64_t>(v);
  }
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    problem.nodes[n].file_id = static_cast<int64_t>(n);
  }
  return problem;
}

TEST(PeakWorth, IsOfWhatWaitsWhereBytesAreShort) {
  const Problem problem = Waiting();
  const auto plan = KeepEverything(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<double> worth = WorthAtPeak(problem, *plan);
  EXPECT_GT(worth[0], 0.9);
  EXPECT_LE(worth[0], 1);
  EXPECT_EQ(worth[1], 0);  // is read at the next step
  EXPECT_EQ(worth[2], 0);
  EXPECT_GT(worth[3], 0);
  EXPECT_LT(worth[3], 1e-3);
}

TEST(PeakWorth, DecidesWhichLossyCodecsAreLeft) {
  const Problem problem = Waiting();
  const auto plan = KeepEverything(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // One codec is within the limit: by bytes that of a value which is read at
  // once.
  const Problem by_bytes = ChooseLossy(problem);
  EXPECT_TRUE(by_bytes.values[0].stash.empty());
  const Problem at_peak = ChooseLossy(problem, WorthAtPeak(problem, *plan));
  EXPECT_EQ(at_peak.values[0].stash.size(), 1u);
  for (int v = 1; v < 6; ++v) EXPECT_TRUE(at_peak.values[v].stash.empty());
}

}  // namespace
}  // namespace loadline::planner
