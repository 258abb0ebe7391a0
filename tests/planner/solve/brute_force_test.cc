// The least peak over all sequences of a tiny problem, recomputation included,
// against the bound and the solver.
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Least peak (charged bytes, by position) over all sequences with at most
// `extra` reruns.
int64_t LeastPeak(const SearchModel& model, int extra) {
  int64_t best = INT64_MAX;
  Schedule schedule;
  schedule.host_home.assign(model.chains.size(), 0);
  std::vector<int> runs(model.node_count, 0);
  const std::function<void(int, int)> extend = [&](int missing, int left) {
    if (missing == 0) {
      const Lifetimes lives = FindLifetimes(model, schedule);
      if (lives.valid) best = std::min(best, lives.peak_bytes);
    }
    for (int node = 0; node < model.node_count; ++node) {
      const bool first = runs[node] == 0;
      if (!first && (left == 0 || !model.may_rerun[node])) continue;
      bool ready = true;
      for (int v : model.reads[node]) {
        if (model.producer[v] >= 0 && runs[model.producer[v]] == 0) {
          ready = false;
        }
      }
      if (!ready) continue;
      ++runs[node];
      schedule.items.push_back({ItemKind::kRun, node});
      extend(missing - first, left - !first);
      schedule.items.pop_back();
      --runs[node];
    }
  };
  extend(model.node_count, extra);
  return best;
}

TEST(Solve, MeetsTheLeastPeakOfTinyProblems) {
  int met = 0, tried = 0;
  for (uint64_t seed = 1; tried < 60; ++seed) {
    Problem problem = RandomProblem(seed, 5, seed % 2 == 0, false);
    problem.addresses = false;
    if (problem.nodes.size() > 6) continue;
    ++tried;
    const SearchModel model = MakeSearchModel(problem, true, false);
    const int64_t least = LeastPeak(model, 2);
    ASSERT_LE(BoundPeak(model).bytes, least) << seed;
    SolveOptions options;
    options.budget_bytes = least;
    options.work_limit = 50'000;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    met += plan.ok();
    // Below the least peak only more reruns than were enumerated can help.
    options.budget_bytes = least - 1;
    const absl::StatusOr<Plan> below = Solve(problem, options);
    if (below.ok()) {
      EXPECT_GT(below->sequence.size(), problem.nodes.size() + 2) << seed;
    }
  }
  EXPECT_GE(met, tried * 9 / 10) << met << " of " << tried;
}

}  // namespace
}  // namespace loadline::planner
