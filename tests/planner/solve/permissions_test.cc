// Codecs and variants in the search: every plan verified, only what is allowed
// used, and small problems whose best plan is known by hand. Against the exact
// optimum: bound_test.cc; edit by edit: search_state_test.cc.
#include "planner/problem/permissions.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "planner/verify/verify_facts.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/solve_samples.h"

namespace loadline::planner {
namespace {

Problem ProblemWithChoices(uint64_t seed) {
  Problem problem = RandomProblem(seed, 15 + static_cast<int>(seed % 25),
                                  seed % 3 == 0, seed % 2 == 0);
  AddRandomChoices(seed, problem);
  return problem;
}

// What the steps of plans use.
struct Used {
  int codecs = 0, lossy = 0, variants = 0, inexact = 0;
};

void Count(const Problem& problem, const Plan& plan, Used& used) {
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kEncode) {
      const Value& value = problem.value(plan.buffer(step.from).value);
      ++used.codecs;
      used.lossy += !FindCodec(value, step.codec)->lossless;
    }
    if (!step.variant.empty()) {
      ++used.variants;
      used.inexact +=
          !FindVariant(problem.node(step.node), step.variant)->exact;
    }
  }
}

TEST(Permissions, EveryPlanIsVerifiedAndUsesWhatIsAllowed) {
  Used by_default, everything;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const Problem problem = ProblemWithChoices(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    for (int percent : {110, 75, 60}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      options.work_limit = 5 * kWork;
      if (seed % 8 != 0) options.bound_work_limit = 0;  // they take long
      for (Used* used : {&by_default, &everything}) {
        options.permissions.lossy = options.permissions.inexact =
            used == &everything;
        const absl::StatusOr<Plan> plan = Solve(problem, options);
        if (!plan.ok()) {
          EXPECT_TRUE(absl::IsResourceExhausted(plan.status()));
          continue;
        }
        EXPECT_TRUE(Verify(problem, *plan).ok()) << Verify(problem, *plan);
        EXPECT_LE(plan->arena_bytes, options.budget_bytes);
        EXPECT_LE(plan->bounds.peak_bytes, plan->predicted.peak_bytes);
        EXPECT_LE(plan->bounds.step_ns, plan->predicted.step_ns);
        Count(problem, *plan, *used);
      }
    }
  }
  EXPECT_GT(by_default.codecs, 10);
  EXPECT_GT(by_default.variants, 50);
  EXPECT_EQ(by_default.lossy + by_default.inexact, 0);
  EXPECT_GT(everything.lossy, 4);
  EXPECT_GT(everything.inexact, 10);
}

TEST(Permissions, AreNoSlowerThanKeepEverythingInItsBytes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = ProblemWithChoices(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = all->budget_bytes;
    options.work_limit = 0;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status();
    EXPECT_LE(plan->predicted.step_ns, all->predicted.step_ns) << seed;
  }
}

TEST(Permissions, NoneMeansNone) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = ProblemWithChoices(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = all->predicted.peak_bytes / 100 * 70;
    options.work_limit = kWork;
    options.bound_work_limit = 0;
    options.permissions = Permissions::None();
    Problem bare = problem;
    for (Value& value : bare.values) value.stash.clear();
    for (Node& node : bare.nodes) node.variants.clear();
    const absl::StatusOr<Plan> none = Solve(problem, options);
    const absl::StatusOr<Plan> plain = Solve(bare, options);
    ASSERT_EQ(none.ok(), plain.ok());
    if (!none.ok()) continue;
    ++met;
    EXPECT_EQ(none->predicted.step_ns, plain->predicted.step_ns);
    EXPECT_EQ(none->sequence, plain->sequence);
  }
  EXPECT_GE(met, 5);
}

TEST(Permissions, LargerBudgetsAreNeverSlower) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem = ProblemWithChoices(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    int64_t last_step_ns = INT64_MAX;
    for (int twentieth = 5; twentieth <= 24; ++twentieth) {
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 20 * twentieth;
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      if (!plan.ok()) {
        EXPECT_EQ(last_step_ns, INT64_MAX) << seed;
        continue;
      }
      EXPECT_LE(plan->predicted.step_ns, last_step_ns)
          << "seed " << seed << " at " << 5 * twentieth << " %";
      last_step_ns = plan->predicted.step_ns;
      ++met;
    }
  }
  // At least where everything can be kept.
  EXPECT_GE(met, 6 * 5);
}

// a (1000 bytes) lies idle while c (1000 bytes) is there; 1200 bytes are too
// few for both. Pure compute takes 500 ns and what `a` takes to make.
Problem IdleProblem(int64_t make_ns) {
  Problem problem;
  problem.name = "idle";
  problem.alignment_bytes = 1;
  const int64_t bytes[] = {10, 1000, 10, 1000, 10, 10, 10};
  const char* const names[] = {"x", "a", "b", "c", "d", "e", "f"};
  for (int v = 0; v < 7; ++v) {
    Value value;
    value.file_id = v;
    value.name = names[v];
    value.bytes = bytes[v];
    problem.values.push_back(value);
  }
  problem.values[1].stash.push_back({"mask", 50, 20, 30, true, 0.0});
  const ValueId x{0}, a{1}, b{2}, c{3}, d{4}, e{5}, f{6};
  problem.nodes = {{0, "make", make_ns, {x}, {a}, 0, true, {}, {}},
                   {1, "b", 100, {a}, {b}, 0, true, {}, {}},
                   {2, "c", 100, {b}, {c}, 0, true, {}, {}},
                   {3, "d", 100, {c}, {d}, 0, true, {}, {}},
                   {4, "e", 100, {d}, {e}, 0, true, {}, {}},
                   {5, "f", 100, {e, a}, {f}, 0, true, {}, {}}};
  problem.outputs = {f};
  return problem;
}

void GiveCopies(double bytes_per_s, Problem& problem) {
  Machine machine;
  machine.name = "test";
  machine.device_bytes = 1 << 20;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = bytes_per_s;
  machine.host_bytes = 1 << 20;
  problem.machine = machine;
}

Plan Best(const Problem& problem, const Permissions& permissions = {}) {
  SolveOptions options;
  options.budget_bytes = 1200;
  options.permissions = permissions;
  options.work_limit = 25 * kWork;  // six nodes
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

Decision DecisionOf(const Plan& plan, ValueId value) {
  for (const Decision& decision : plan.decisions) {
    if (decision.value == value) return decision;
  }
  return {};
}

TEST(Permissions, CodecWinsOverRerunAndSlowCopy) {
  Problem problem = IdleProblem(500);
  GiveCopies(1e9, problem);  // 1000 ns each way
  const Plan plan = Best(problem);
  EXPECT_EQ(plan.predicted.step_ns, 1000 + 20 + 30);
  const Decision decision = DecisionOf(plan, ValueId{1});
  EXPECT_EQ(decision.action, Action::kStash);
  EXPECT_EQ(decision.why,
            "is kept in 50 B instead of 1000 B for 300 ns by codec mask, at "
            "the cost of 50 ns to encode and decode");
}

TEST(Permissions, CodecLosesToCheapRerun) {
  const Plan plan = Best(IdleProblem(30));
  EXPECT_EQ(plan.predicted.step_ns, 530 + 30);
  EXPECT_EQ(DecisionOf(plan, ValueId{1}).action, Action::kRecompute);
}

TEST(Permissions, CodecLosesToHiddenCopy) {
  Problem problem = IdleProblem(500);
  GiveCopies(20e9, problem);  // 50 ns each way
  const Plan plan = Best(problem);
  EXPECT_EQ(plan.predicted.step_ns, 1000);
  EXPECT_EQ(DecisionOf(plan, ValueId{1}).action, Action::kOffload);
}

TEST(Permissions, LossyCodecOnlyWhereAllowed) {
  Problem problem = IdleProblem(500);
  problem.values[1].stash[0].lossless = false;
  problem.values[1].stash[0].error = 0.25;
  EXPECT_EQ(Best(problem).predicted.step_ns, 1500);
  const Plan plan = Best(problem, {.lossy = true});
  EXPECT_EQ(plan.predicted.step_ns, 1050);
  EXPECT_NE(DecisionOf(plan, ValueId{1}).why.find("its error is up to 0.25"),
            std::string::npos);
}

TEST(Permissions, OneEncodeServesTwoDecodes) {
  // Another idle stretch of `a` after its second use.
  Problem problem = IdleProblem(500);
  for (const char* name : {"g", "h", "i"}) {
    Value value;
    value.file_id = static_cast<int64_t>(problem.values.size());
    value.name = name;
    value.bytes = problem.values.size() == 7 ? 1000 : 10;
    problem.values.push_back(value);
  }
  const ValueId a{1}, f{6}, g{7}, h{8}, i{9};
  problem.nodes.push_back({6, "g", 100, {f}, {g}, 0, true, {}, {}});
  problem.nodes.push_back({7, "h", 100, {g}, {h}, 0, true, {}, {}});
  problem.nodes.push_back({8, "i", 100, {h, a}, {i}, 0, true, {}, {}});
  problem.outputs = {i};
  EXPECT_EQ(Best(problem).predicted.step_ns, 1300 + 20 + 30 + 30);
}

TEST(Permissions, VariantsTradeTimeForWorkspace) {
  Problem problem = IdleProblem(30);
  // Fits in 1200 bytes with b alone, not with c.
  problem.nodes[1].variants.push_back({"quick", 40, 150, true});
  problem.nodes[2].variants.push_back({"quick", 40, 250, true});
  problem.nodes[5].variants.push_back({"rough", 10, 0, false});
  const Plan plan = Best(problem);
  EXPECT_EQ(plan.predicted.step_ns, 530 + 30 - 60);
  EXPECT_EQ(plan.steps[1].variant, "quick");
  EXPECT_EQ(Best(problem, {.inexact = true}).predicted.step_ns, 500 - 90);
}

TEST(Permissions, VerifyRejectsAnotherCodecOrVariant) {
  Problem problem = IdleProblem(500);
  problem.values[1].stash.push_back({"other", 60, 21, 31, true, 0.0});
  problem.nodes[1].variants.push_back({"quick", 40, 0, true});
  problem.nodes[2].variants.push_back({"other", 100, 0, true});
  const Plan plan = Best(problem);
  int corrupted = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const bool codec = plan.steps[s].kind == StepKind::kEncode ||
                       plan.steps[s].kind == StepKind::kDecode;
    if (!codec && plan.steps[s].variant != "quick") continue;
    for (const char* name : {"", "none", "other"}) {
      Plan bad = plan;
      (codec ? bad.steps[s].codec : bad.steps[s].variant) = name;
      const absl::Status status = Verify(problem, bad);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
          << "step " << s << " with '" << name << "'";
      ++corrupted;
    }
  }
  EXPECT_EQ(corrupted, 9);  // an encode, a decode and a variant
}

}  // namespace
}  // namespace loadline::planner
