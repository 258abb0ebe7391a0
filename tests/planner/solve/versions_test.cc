// Plans of tiny problems with a persistent value that is updated one to three
// times, against the optimum that the oracle finds: an old version may stay
// readable while a newer one lies elsewhere.
#include <cstdint>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/tiny_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kMostVersionStates = 20'000;

struct VersionTally {
  int optima = 0;  // the oracle knows the optimum
  int met = 0;     // of those, the plan is as fast
  int apart = 0;   // of those, a version is read after its update
};

// Does some node read a version after the node that makes the next one?
bool ReadsOldVersion(const Problem& problem, const Plan& plan) {
  const ProblemIndex index = IndexProblem(problem);
  std::vector<char> replaced(problem.values.size(), 0);
  for (const NodeId node : plan.sequence) {
    for (const ValueId input : problem.node(node).inputs) {
      if (replaced[Index(input)]) return true;
    }
    for (const ValueId output : problem.node(node).outputs) {
      const ValueId old = index.previous_version[Index(output)];
      if (old != kNoValue) replaced[Index(old)] = 1;
    }
  }
  return false;
}

void Compare(const Problem& problem, int64_t budget_bytes,
             VersionTally& tally) {
  const Oracle oracle =
      FindLeastStep(problem, budget_bytes, kMostVersionStates);
  if (oracle.gave_up) return;
  SolveOptions options;
  options.budget_bytes = budget_bytes;
  options.work_limit = 20'000;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  if (!oracle.step_ns) {
    EXPECT_FALSE(plan.ok());
    return;
  }
  ++tally.optima;
  if (!plan.ok()) return;
  const double step_ns = static_cast<double>(plan->predicted.step_ns);
  EXPECT_GE(step_ns, *oracle.step_ns - 0.51);
  if (step_ns > *oracle.step_ns + 0.51) return;
  ++tally.met;
  tally.apart += ReadsOldVersion(problem, *plan);
}

VersionTally CompareVersions(const TinyFeatures& features, uint64_t count) {
  VersionTally tally;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const Problem problem = TinyProblem(seed, features);
    const int64_t least_bytes =
        BoundPeak(MakeSearchModel(problem, true, true)).bytes;
    constexpr int64_t kMoreBytes[] = {0, 1, 2, 4, 7, 11};
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Compare(problem, least_bytes + kMoreBytes[seed % 6], tally);
  }
  std::printf("%d optima, plan meets %d, %d of them read an old version\n",
              tally.optima, tally.met, tally.apart);
  return tally;
}

TEST(SolveVersions, MeetsTheOptimumWithReruns) {
  const VersionTally tally = CompareVersions({.versions = true}, 300);
  EXPECT_GE(tally.met * 100, tally.optima * 99);
  EXPECT_GT(tally.apart, 5);
}

TEST(SolveVersions, MeetsTheOptimumWithCodecs) {
  const VersionTally tally =
      CompareVersions({.codecs = true, .versions = true}, 300);
  EXPECT_GE(tally.met * 100, tally.optima * 98);
  EXPECT_GT(tally.apart, 2);
}

TEST(SolveVersions, MeetsTheOptimumWithCopies) {
  const VersionTally tally =
      CompareVersions({.copies = true, .versions = true}, 300);
  EXPECT_GE(tally.met * 100, tally.optima * 98);
  EXPECT_GT(tally.apart, 0);
}

// A reads p again after U1 has made p1 at another address. Only then is the
// workspace of M free while b is kept.
TEST(SolveVersions, KeepsTheFirstVersionWhileTheSecondLiesElsewhere) {
  Problem problem;
  problem.name = "apart";
  problem.alignment_bytes = 1;
  const auto value = [&](int64_t bytes) {
    const auto id = static_cast<int32_t>(problem.values.size());
    problem.values.push_back({.file_id = id, .bytes = bytes});
    return ValueId{id};
  };
  const ValueId p = value(1), x = value(1), a = value(10), b = value(10),
                c = value(1), p1 = value(1), m = value(1), d = value(1),
                p2 = value(1);
  problem.values[Index(p)].persistent = true;
  problem.nodes = {{0, "A", 10, {p}, {a}, 0, true, {}, {}},
                   {1, "B", 1000, {x}, {b}, 0, true, {}, {}},
                   {2, "C", 10, {a, b}, {c}, 0, true, {}, {}},
                   {3, "U1", 10, {p, c}, {p1}, 0, false, {{p, p1}}, {}},
                   {4, "M", 10, {c, p1}, {m}, 11, true, {}, {}},
                   {5, "D", 10, {a, b, m}, {d}, 0, true, {}, {}},
                   {6, "U2", 10, {p1, d}, {p2}, 0, false, {{p1, p2}}, {}}};
  problem.outputs = {d};
  ASSERT_EQ(ValidateProblem(problem), absl::OkStatus());
  SolveOptions options;
  options.budget_bytes = 25;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->predicted.step_ns, 1070);
  EXPECT_EQ(Verify(problem, *plan), absl::OkStatus());
  EXPECT_TRUE(ReadsOldVersion(problem, *plan));
}

// Old and new contents of a value have one place on the host, and the host has
// no more than the two that do not fit the device beside A.
TEST(SolveVersions, StateFillsTheHost) {
  Problem problem;
  problem.name = "full host";
  problem.alignment_bytes = 1;
  const auto value = [&](int64_t bytes, bool state) {
    const auto id = static_cast<int32_t>(problem.values.size());
    problem.values.push_back(
        {.file_id = id, .bytes = bytes, .persistent = state, .offload = state});
    return ValueId{id};
  };
  const ValueId s = value(100, true), t = value(100, true), x = value(1, false),
                a = value(100, false), g = value(1, false),
                s1 = value(100, true), t1 = value(100, true);
  problem.nodes = {{0, "A", 1000, {x}, {a}, 0, true, {}, {}},
                   {1, "G", 1000, {a}, {g}, 0, true, {}, {}},
                   {2, "S", 10, {g, s}, {s1}, 0, false, {{s, s1}}, {}},
                   {3, "T", 10, {g, t}, {t1}, 0, false, {{t, t1}}, {}}};
  Machine machine;
  machine.name = "test";
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 1e9;
  problem.machine = machine;
  for (const int64_t host_bytes : {200, 199}) {
    problem.machine->host_bytes = host_bytes;
    ASSERT_EQ(ValidateProblem(problem), absl::OkStatus());
    SolveOptions options;
    options.budget_bytes = 150;
    options.work_limit = 20'000;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_EQ(plan.ok(), host_bytes == 200) << plan.status();
    if (!plan.ok()) continue;
    EXPECT_EQ(plan->host_bytes, 200);
    EXPECT_EQ(Verify(problem, *plan), absl::OkStatus());
  }
}

}  // namespace
}  // namespace loadline::planner
