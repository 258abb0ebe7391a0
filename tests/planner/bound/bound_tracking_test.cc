// Which values matter at which cut.
#include "planner/bound/bound_tracking.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

std::vector<int> TrackedAt(const Problem& problem, std::vector<int> cuts,
                           int epoch, int until = -1) {
  const SearchModel model = MakeSearchModel(problem, true, true);
  const ProgramParts parts(model, {.cuts = std::move(cuts), .until = until});
  return parts.tracked.In(epoch);
}

TEST(TrackedValues, AreReadLaterOrByRerunsForWhatIs) {
  Problem problem = LineProblem();
  // Of C's ancestors' values D reads a; making a again reads in.
  EXPECT_EQ(TrackedAt(problem, {2}, 1), std::vector<int>({0, 1}));
  problem.nodes[0].recompute = false;
  EXPECT_EQ(TrackedAt(problem, {2}, 1), std::vector<int>({1}));
}

TEST(TrackedValues, IncludeWhatALaterCutTracks) {
  const Problem problem = LineProblem();
  // B reads a at its own first run only, but D, the second cut's reader, needs
  // a and c in the epoch before.
  EXPECT_EQ(TrackedAt(problem, {1, 2}, 1), std::vector<int>({0, 1}));
  EXPECT_EQ(TrackedAt(problem, {1, 3}, 2), std::vector<int>());
}

TEST(TrackedValues, IncludeOutputsOnlyToTheEndOfTheStep) {
  Problem problem = LineProblem();
  problem.outputs.push_back(ValueId{2});
  // Making b again reads a.
  EXPECT_EQ(TrackedAt(problem, {3}, 1), std::vector<int>({0, 1, 2}));
  EXPECT_EQ(TrackedAt(problem, {2}, 1, 3), std::vector<int>({0, 1}));
}

TEST(TrackedValues, LeavePersistentValuesToTheirOwnColumns) {
  const Problem problem = WeightProblem();
  EXPECT_EQ(TrackedAt(problem, {1}, 1), std::vector<int>({1, 2}));
}

TEST(TrackedValues, AreBornByTheFirstCutAfterTheirNode) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const ProgramParts parts(model, {.cuts = {1, 3}});
  EXPECT_EQ(parts.tracked.Birth(0), 1);
  EXPECT_EQ(parts.tracked.Birth(1), 1);
  EXPECT_EQ(parts.tracked.Birth(2), 2);
  EXPECT_EQ(parts.tracked.Birth(4), 3);
}

}  // namespace
}  // namespace loadline::planner
