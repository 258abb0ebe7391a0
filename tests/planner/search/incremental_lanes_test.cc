// Times of the lanes under random edits of a SearchState, against FindTimes.
#include "planner/search/incremental_lanes.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

void ExpectPassed(const SearchModel& model, const SearchState& state) {
  const Schedule schedule = state.ToSchedule();
  const Times times = FindTimes(model, schedule);
  int item = -1;
  for (double passed_ns : times.passed_ns) {
    item = state.next(item);
    ASSERT_NEAR(state.PassedNs(item), passed_ns, 1e-3);
  }
}

TEST(IncrementalLanes, FollowCommitsAndForgetUndoneEdits) {
  int stalled = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 25),
                                    seed % 3 != 0, true);
    problem.machine->d2h_h2d_factor = seed % 2 == 0 ? 0.6 : 1.0;
    problem.machine->copies_exclude_compute = seed % 5 == 0;
    problem.machine->copy_overhead_ns = seed % 3 == 0 ? 7 : 0;
    const SearchModel model = MakeSearchModel(problem);
    SearchState state(model, GivenOrder(model), 0);
    TestRandom random(seed);
    for (int edit = 0; edit < 40; ++edit) {
      const double old_ns = state.Makespan();
      EditAtRandom(state, random);
      if (!state.valid()) {
        state.Undo(0);
        ASSERT_NEAR(state.Makespan(), old_ns, 1e-3);
        continue;
      }
      const double step_ns = FindTimes(model, state.ToSchedule()).step_ns;
      // A limit changes nothing below it, and is noticed above it.
      EXPECT_NEAR(state.Makespan(step_ns + 1), step_ns, 1e-3);
      EXPECT_TRUE(std::isinf(state.Makespan(step_ns - 1)));
      if (random.OneIn(3)) {
        state.Undo(0);
      } else {
        // The commit follows the lanes itself where the limit stopped a trial.
        state.Commit();
      }
      ASSERT_NO_FATAL_FAILURE(ExpectPassed(model, state));
      stalled += state.Makespan() > static_cast<double>(state.compute_ns()) + 1;
    }
  }
  EXPECT_GT(stalled, 500);
}

}  // namespace
}  // namespace loadline::planner
