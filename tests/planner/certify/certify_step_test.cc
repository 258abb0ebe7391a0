// Certificates of larger problems: what they keep of a bound, their size, and
// that the same input gives the same bytes.
#include "planner/certify/certify_step.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/certificate/check_certificate.h"
#include "planner/problem/plan.h"
#include "planner/schedule/search_model.h"
#include "planner/schedule/simulate.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

int64_t Multipliers(const Certificate& certificate) {
  int64_t count = 0;
  for (const CertificatePart& part : certificate.parts) {
    for (const CertificateTreeNode& node : part.tree) {
      count += static_cast<int64_t>(node.rows.size());
    }
  }
  return count;
}

TEST(CertifyStep, KeepsMostOfTheBoundOfATransformer) {
  double bound_ns = 0;
  double certified_ns = 0;
  for (bool copies : {false, true}) {
    TransformerShape shape;
    shape.layers = 2;
    shape.copies = copies;
    Problem problem = TransformerProblem(shape);
    if (copies) problem.machine->copy_overhead_ns = 20'000;
    const SearchModel model = MakeSearchModel(problem, true, true);
    StepBoundOptions options;
    options.budget_bytes =
        FindLifetimes(model, GivenOrder(model)).raw_peak_bytes / 10 * 6;
    const StepBound bound = BoundStepAt(model, options);
    CertifyOptions certify;
    certify.budget_bytes = options.budget_bytes;
    const CertifiedBound certified = CertifyStep(problem, bound, certify);
    EXPECT_EQ(
        *CertifiedStepNs(problem, options.budget_bytes, certified.certificate),
        certified.step_ns);
    EXPECT_LE(Multipliers(certified.certificate), certify.most_multipliers * 2);
    bound_ns += static_cast<double>(bound.step_ns - model.compute_ns);
    certified_ns += static_cast<double>(certified.step_ns - model.compute_ns);
    certify.most_leaves = 1;
    EXPECT_LE(CertifyStep(problem, bound, certify).step_ns, certified.step_ns);
    certify.stop.deadline = absl::InfinitePast();
    const CertifiedBound stopped = CertifyStep(problem, bound, certify);
    EXPECT_LE(stopped.step_ns, certified.step_ns);
    EXPECT_EQ(
        *CertifiedStepNs(problem, options.budget_bytes, stopped.certificate),
        stopped.step_ns);
  }
  EXPECT_GT(bound_ns, 0);
  EXPECT_GT(certified_ns, 0.95 * bound_ns);
}

TEST(CertifyStep, ComesWithEveryPlan) {
  TransformerShape shape;
  shape.layers = 4;
  shape.vocabulary = 1000;
  shape.copies = false;
  const Problem problem = TransformerProblem(shape);
  SolveOptions options;
  options.work_limit = 2'000;
  options.bound_work_limit = 15'000;
  options.budget_bytes = KeepEverything(problem)->arena_bytes / 10 * 6;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->certificate.has_value());
  EXPECT_FALSE(plan->certificate->parts.empty());
  EXPECT_EQ(*CertifiedStepNs(problem, plan->budget_bytes, *plan->certificate),
            plan->bounds.step_ns);
  const std::string text = PlanToJson(*plan, problem);
  EXPECT_EQ(PlanToJson(*Solve(problem, options), problem), text);
  const absl::StatusOr<Plan> read = PlanFromJson(text, problem);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Verify(problem, *read), absl::OkStatus());
  EXPECT_EQ(PlanToJson(*read, problem), text);
  Plan claim = *plan;
  ++claim.bounds.step_ns;
  EXPECT_THAT(std::string(Verify(problem, claim).message()),
              ::testing::HasSubstr("but the certificate proves"));
}

}  // namespace
}  // namespace loadline::planner
