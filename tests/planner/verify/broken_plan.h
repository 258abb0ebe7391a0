// Plans that break one rule each, for the tests of Verify.
#ifndef LOADLINE_TESTS_PLANNER_VERIFY_BROKEN_PLAN_H_
#define LOADLINE_TESTS_PLANNER_VERIFY_BROKEN_PLAN_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {

// One way to break SmallPlan of SmallProblem.
struct BrokenPlan {
  std::string message;  // part of what Verify says
  std::function<void(Problem&, Plan&)> break_it;
};

// Checks that Verify refuses each with its message.
inline void ExpectRefused(const std::vector<BrokenPlan>& cases) {
  for (const BrokenPlan& test : cases) {
    Problem problem = SmallProblem();
    Plan plan = SmallPlan(problem);
    test.break_it(problem, plan);
    const absl::Status status = Verify(problem, plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << test.message;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr(test.message));
  }
}

inline BufferId B(int id) { return BufferId(id); }

// A step that runs the codec "half" over two buffers on the compute lane.
inline Step CodecStep(StepKind kind, int from, int to) {
  Step step;
  step.kind = kind;
  step.from = B(from);
  step.to = B(to);
  step.codec = "half";
  return step;
}

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_VERIFY_BROKEN_PLAN_H_
