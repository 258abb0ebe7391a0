// Problems at the edges of what is valid: huge and zero numbers, no nodes, an
// alignment far above all bytes. Each has a plan or one clear error, soon.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/solve/budget.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"

namespace loadline::planner {
namespace {

// A chain of nodes that take `time_ns` each, over values of `bytes`.
Problem Chain(int nodes, int64_t bytes, int64_t time_ns) {
  Problem problem;
  problem.name = "chain";
  for (int v = 0; v <= nodes; ++v) {
    problem.values.push_back({.file_id = v, .bytes = bytes});
  }
  for (int n = 0; n < nodes; ++n) {
    problem.nodes.push_back({.file_id = n,
                             .time_ns = time_ns,
                             .inputs = {ValueId{n}},
                             .outputs = {ValueId{n + 1}}});
  }
  problem.outputs = {ValueId{nodes}};
  return problem;
}

// Node 2 needs its workspace while `a` and `b` wait for node 3.
Problem Waiting(int64_t bytes, int64_t workspace_bytes, bool recompute) {
  Problem problem;
  problem.name = "waiting";
  problem.alignment_bytes = 1;
  for (int64_t size : {int64_t{1}, bytes, bytes, int64_t{1}, int64_t{1}}) {
    const auto id = static_cast<int64_t>(problem.values.size());
    problem.values.push_back({.file_id = id, .bytes = size});
  }
  const ValueId in{0}, a{1}, b{2}, c{3}, d{4};
  problem.nodes = {{0, "a", 2, {in}, {a}, 0, recompute, {}, {}},
                   {1, "b", 2, {in}, {b}, 0, recompute, {}, {}},
                   {2, "c", 1, {a}, {c}, workspace_bytes, true, {}, {}},
                   {3, "d", 1, {a, b, c}, {d}, 0, true, {}, {}}};
  problem.outputs = {d};
  Machine machine;
  machine.name = "slow";
  machine.device_bytes = 1000;
  machine.d2h.bytes_per_s = 1;
  machine.h2d.bytes_per_s = 1;
  machine.d2h_h2d_factor = 0.001;
  machine.host_bytes = int64_t{1} << 62;
  problem.machine = machine;
  return problem;
}

constexpr int64_t kEveryPercent[] = {150, 100, 99, 75, 60, 50, 30, 1, 0};

// Every budget: a plan within it, or an error of one of the documented kinds.
void ExpectAnswers(const Problem& problem) {
  SCOPED_TRACE(problem.name);
  ASSERT_EQ(ValidateProblem(problem), absl::OkStatus());
  const absl::Time start = absl::Now();
  SolveOptions options;
  options.work_limit = 20'000;
  const absl::StatusOr<Plan> whole =
      SolveWithin(problem, Budget::Share(kWholePpb), options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const absl::StatusOr<Plan> smallest = SolveSmallest(problem, options);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  EXPECT_EQ(Verify(problem, *smallest), absl::OkStatus());
  EXPECT_LE(smallest->bounds.peak_bytes, smallest->arena_bytes);
  for (int64_t percent : kEveryPercent) {
    const absl::StatusOr<Plan> plan =
        SolveWithin(problem, Budget::Share(kWholePpb / 100 * percent), options);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted)
          << percent << " %: " << plan.status();
    }
    EXPECT_TRUE(plan.ok() || percent < 100) << percent << " %";
  }
  options.time_limit = absl::Milliseconds(200);
  options.budget_bytes = smallest->arena_bytes - 1;
  if (options.budget_bytes >= 0) {
    EXPECT_FALSE(Solve(problem, options).ok());
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));
}

TEST(OddProblems, AnAlignmentFarAboveAllBytes) {
  for (int shift : {8, 20, 36, 40}) {
    Problem problem = Chain(3, 100, 10);
    problem.alignment_bytes = int64_t{1} << shift;
    ExpectAnswers(problem);
  }
}

TEST(OddProblems, NoNodes) {
  Problem problem;
  problem.name = "nothing";
  ExpectAnswers(problem);
  problem.values = {{.file_id = 0, .bytes = 100, .persistent = true},
                    {.file_id = 1, .bytes = 50},
                    {.file_id = 2, .bytes = 70}};
  problem.outputs = {ValueId{1}};
  problem.name = "no nodes";
  ExpectAnswers(problem);
  problem.alignment_bytes = 1;
  EXPECT_EQ(KeepEverything(problem)->arena_bytes, 150);
  problem.addresses = false;
  ExpectAnswers(problem);
  EXPECT_EQ(KeepEverything(problem)->arena_bytes, 150);
  problem.machine = Waiting(1, 1, true).machine;
  problem.name = "copies, but no nodes";
  for (const bool addresses : {false, true}) {
    problem.addresses = addresses;
    ExpectAnswers(problem);
    problem.values[2].persistent = true;
    problem.values[2].stash = {{.name = "zip", .bytes = 1}};
    ExpectAnswers(problem);
  }
}

TEST(OddProblems, ZeroBytesAndZeroTimes) {
  ExpectAnswers(Chain(4, 0, 1));
  ExpectAnswers(Chain(5, 100, 0));
  ExpectAnswers(Chain(5, 0, 0));
}

TEST(OddProblems, SumsJustBelowTheLimitOfInt64) {
  ExpectAnswers(Chain(3, 100, 3'000'000'000'000'000'000));
  EXPECT_EQ(KeepEverything(Chain(1, 1, int64_t{9'200'000'000'000'000'000}))
                ->predicted.step_ns,
            9'200'000'000'000'000'000);
  Problem large = Chain(2, 3'000'000'000'000'000'000, 10);
  ExpectAnswers(large);
  large.alignment_bytes = 1;
  large.addresses = false;
  ExpectAnswers(large);
}

TEST(OddProblems, CopiesThatTakeYears) {
  const int64_t petabyte = 1'000'000'000'000'000;
  ExpectAnswers(Waiting(petabyte, petabyte / 2 * 3, false));
  Problem latency = Waiting(10, 20, true);
  Link& d2h = latency.machine->d2h;
  Link& h2d = latency.machine->h2d;
  d2h.latency_ns = h2d.latency_ns = 9'000'000'000'000'000'000;
  h2d.bytes_per_s = 1e18;
  ExpectAnswers(latency);
  d2h.latency_ns = h2d.latency_ns = 1'000'000'000'000'000'000;
  latency.machine->host_bytes = INT64_MAX;
  ExpectAnswers(latency);
  latency.nodes[0].recompute = latency.nodes[1].recompute = false;
  ExpectAnswers(latency);
  d2h.latency_ns = h2d.latency_ns = 1;
  for (int64_t overhead_ns :
       {1'000'000'000'000'000'000, 900'000'000'000'000'000}) {
    latency.machine->copy_overhead_ns = overhead_ns;
    ExpectAnswers(latency);
  }
}

}  // namespace
}  // namespace loadline::planner
