// Programs of spans that do not overlap: their costs together against the exact
// optimum of small problems.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_program.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kMostSpanStates = 40'000;
constexpr Permissions kEveryCodec = {.lossy = true, .inexact = true};

class Spans {
 public:
  Spans(const SearchModel& model, int64_t budget_bytes)
      : model_(model),
        budget_bytes_(budget_bytes),
        least_(FindLeastCosts(model)),
        precedence_(model) {}

  // -1: not even the span can be within the budget.
  double Ns(int node, int until) const {
    const BoundProgram program =
        MakeBoundProgram(model_, least_, precedence_,
                         {.cuts = {node},
                          .until = until,
                          .budget_bytes = budget_bytes_,
                          .horizon_ns = 1e18,
                          .free_nodes = true});
    const MipBound bound = SolveMip(program.program, {1'000'000}, kNoLimit);
    if (bound.infeasible) return -1;
    return std::max(0.0, bound.cost * program.unit_ns);
  }

  // Most that two spans one after the other cost together, and most that one
  // does to the end.
  void Find() {
    for (int first = 0; first < model_.node_count; ++first) {
      const double whole = Ns(first, -1);
      EXPECT_GE(whole, 0);
      one_ns = std::max(one_ns, whole);
      const std::vector<char> after = precedence_.Descendants(first);
      for (int second = 0; second < model_.node_count; ++second) {
        if (!after[second]) continue;
        const double part = Ns(first, second);
        EXPECT_LE(part, whole + 1e-3) << first << " to " << second;
        two_ns = std::max(two_ns, part + Ns(second, -1));
      }
    }
  }

  double one_ns = 0, two_ns = 0;

 private:
  const SearchModel& model_;
  const int64_t budget_bytes_;
  const LeastCosts least_;
  const Precedence precedence_;
};

TEST(BoundProgram, SpansTogetherAreNeverAboveTheOptimum) {
  int solved = 0, more_than_one = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 8, seed % 3 == 0, false);
    if (seed % 4 == 0) AddRandomChoices(seed, problem);
    problem.addresses = false;
    if (problem.nodes.size() > 10 || problem.values.size() > 18) continue;
    const SearchModel model = MakeSearchModel(problem, true, true, kEveryCodec);
    const auto all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    const int64_t least_bytes = BoundPeak(model).bytes;
    const int64_t budget_bytes =
        least_bytes + (all->predicted.peak_bytes - least_bytes) / 3;
    const Oracle oracle = FindLeastStep(problem, budget_bytes, kMostSpanStates);
    if (oracle.gave_up || !oracle.step_ns) continue;
    ++solved;
    Spans spans(model, budget_bytes);
    spans.Find();
    const double least_ns =
        *oracle.step_ns - static_cast<double>(BoundStep(model));
    EXPECT_LE(spans.one_ns, least_ns + 1e-3);
    EXPECT_LE(spans.two_ns, least_ns + 1e-3);
    more_than_one += spans.two_ns > spans.one_ns + 0.5;
  }
  EXPECT_GT(solved, 10);
  EXPECT_GT(more_than_one, 0);
}

}  // namespace
}  // namespace loadline::planner
