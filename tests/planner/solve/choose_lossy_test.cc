// Which lossy codecs a limit on errors leaves, and that no plan exceeds it.
#include "planner/solve/choose_lossy.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "planner/problem/used_codecs.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// `values` values of 1000 bytes with codecs of 8, 4, 2 and 1 bits, whose errors
// grow as 1 / (2^b - 1) squared, from a random one; `most` are all of 1.
Problem Quantized(uint64_t seed, int values, double most) {
  TestRandom random(seed);
  Problem problem;
  for (int v = 0; v < values; ++v) {
    Value value;
    value.bytes = random.In(100, 1000);
    const double error = static_cast<double>(random.In(1, 1000)) * 1e-3 / most;
    for (int bits : {8, 4, 2, 1}) {
      const double levels = (1 << bits) - 1;
      value.stash.push_back({std::to_string(bits), value.bytes * bits / 32, 1,
                             1, false, error * 255 * 255 / levels / levels});
    }
    value.stash.push_back({"lossless", 90, 1, 1, true, 0});
    problem.values.push_back(value);
  }
  return problem;
}

struct Total {
  double error = 0;
  int64_t saved_bytes = 0;
};

Total TotalOf(const Problem& chosen) {
  Total total;
  for (const Value& value : chosen.values) {
    int lossy = 0;
    for (const Codec& codec : value.stash) {
      if (codec.lossless) continue;
      ++lossy;
      total.error += codec.error;
      total.saved_bytes += value.bytes - codec.bytes;
    }
    EXPECT_LE(lossy, 1);
    EXPECT_TRUE(std::any_of(value.stash.begin(), value.stash.end(),
                            [](const Codec& c) { return c.lossless; }));
  }
  return total;
}

// The most bytes that any choice within the limit saves.
int64_t MostSaved(const Problem& problem, size_t v, double left) {
  if (v == problem.values.size()) return 0;
  int64_t most = MostSaved(problem, v + 1, left);
  for (const Codec& codec : problem.values[v].stash) {
    if (codec.lossless || codec.error > left) continue;
    most = std::max(most, problem.values[v].bytes - codec.bytes +
                              MostSaved(problem, v + 1, left - codec.error));
  }
  return most;
}

TEST(ChooseLossy, StaysWithinTheLimitAndNearTheBestChoice) {
  double share = 0;
  constexpr int kSeeds = 200;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Problem problem =
        Quantized(seed, 5, static_cast<double>(seed % 20 + 1) * 0.3);
    const Total total = TotalOf(ChooseLossy(problem));
    EXPECT_LE(total.error, 1 + 1e-12);
    const int64_t most = MostSaved(problem, 0, 1);
    EXPECT_LE(total.saved_bytes, most);
    share += most == 0 ? 1
                       : static_cast<double>(total.saved_bytes) /
                             static_cast<double>(most);
  }
  EXPECT_GT(share / kSeeds, 0.9);
}

TEST(ChooseLossy, LeavesNothingButWhatIsFreeWhereAllErrorsAreTooLarge) {
  Problem problem = Quantized(3, 4, 1e-6);
  problem.values[2].stash[1].error = 0;
  EXPECT_TRUE(ErrorsExceedLimit(problem));
  const Problem chosen = ChooseLossy(problem);
  EXPECT_FALSE(ErrorsExceedLimit(chosen));
  for (size_t v = 0; v < chosen.values.size(); ++v) {
    EXPECT_EQ(chosen.values[v].stash.size(), v == 2 ? 2u : 1u);
  }
}

TEST(Solve, NoPlanExceedsTheLimitOfErrors) {
  int used = 0, limited = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Problem problem = RandomProblem(seed, 25, false, false);
    AddRandomChoices(seed, problem);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = all->predicted.peak_bytes / 100 * 60;
    options.permissions.lossy = true;
    options.work_limit = 5'000;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> without = Solve(problem, options);
    if (!without.ok()) continue;
    const CodecFigures free = FiguresOf(problem, *without);
    if (free.error == 0) continue;
    // Twice the error that is allowed.
    for (Value& value : problem.values) {
      for (Codec& codec : value.stash) codec.error *= 2 / free.error;
    }
    const absl::StatusOr<Plan> within = Solve(problem, options);
    if (!within.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(within.status()));
      continue;
    }
    EXPECT_TRUE(Verify(problem, *within).ok()) << Verify(problem, *within);
    EXPECT_LE(FiguresOf(problem, *within).error, 1 + 1e-9);
    ++limited;
    used += FiguresOf(problem, *within).lossy;
    // Verify refuses the plan with twice the error.
    Plan above = *without;
    above.problem_sha256 = ProblemSha256(problem);
    const absl::Status status = Verify(problem, above);
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "more than all that a plan may make"))
        << status;
  }
  EXPECT_GT(limited, 3);
  EXPECT_GT(used, 0);
}

// A search without codecs is part of a search with them.
TEST(Solve, CodecsAreNeverSlower) {
  int faster = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Problem problem = RandomProblem(seed, 20 + static_cast<int>(seed),
                                    seed % 3 == 0, seed % 2 == 0);
    AddRandomChoices(seed, problem);
    for (Node& node : problem.nodes) node.variants.clear();
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    for (int percent : {85, 70, 60, 50, 40}) {
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      options.work_limit = 3'000;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> with = Solve(problem, options);
      options.permissions.codecs = false;
      const absl::StatusOr<Plan> without = Solve(problem, options);
      if (!without.ok()) continue;
      ASSERT_TRUE(with.ok()) << seed << " at " << percent << " %";
      EXPECT_LE(with->predicted.step_ns, without->predicted.step_ns)
          << seed << " at " << percent << " %";
      faster += with->predicted.step_ns < without->predicted.step_ns;
    }
  }
  EXPECT_GT(faster, 5);
}

}  // namespace
}  // namespace loadline::planner
