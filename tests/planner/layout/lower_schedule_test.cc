// Buffers, addresses, lanes and waits of schedules small enough to check by
// hand. Every plan of solve_test.cc goes through Verify besides.
#include "planner/layout/lower_schedule.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

constexpr Item kOutOfY = {ItemKind::kOut, 2};
constexpr Item kBackOfY = {ItemKind::kIn, 2};

Item RunOf(int node) { return {ItemKind::kRun, node}; }

class LowerScheduleTest : public testing::Test {
 protected:
  // Forward, y out and back, gradient, update.
  Schedule WithCopies() const {
    Schedule schedule = GivenOrder(model_);
    schedule.items = {RunOf(0), kOutOfY, kBackOfY, RunOf(1), RunOf(2)};
    return schedule;
  }

  absl::StatusOr<Plan> Lower(const Schedule& schedule, int64_t budget_bytes,
                             bool tightest = false,
                             PackReport* report = nullptr) const {
    return LowerSchedule(model_, schedule,
                         {.budget_bytes = budget_bytes, .tightest = tightest},
                         report);
  }

  // Buffers of the value on the device, in the order of the plan.
  static std::vector<Buffer> DeviceBuffers(const Plan& plan, int value) {
    std::vector<Buffer> found;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.value == ValueId{value} && buffer.space == Space::kDevice) {
        found.push_back(buffer);
      }
    }
    return found;
  }

  const Problem problem_ = SmallProblem();
  const SearchModel model_ = MakeSearchModel(problem_, true, true);
};

TEST_F(LowerScheduleTest, PutsCopiesOnTheirLanesWithTheirWaits) {
  const absl::StatusOr<Plan> plan = Lower(WithCopies(), 1000);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->steps.size(), 5u);
  const std::vector<Step>& steps = plan->steps;
  EXPECT_EQ(steps[0].node, NodeId{0});
  EXPECT_TRUE(steps[0].wait.empty());
  EXPECT_EQ(steps[1].lane, Lane::kD2h);
  EXPECT_EQ(steps[1].kind, StepKind::kCopy);
  EXPECT_EQ(steps[1].wait, std::vector<StepId>{StepId{0}});
  EXPECT_EQ(steps[2].lane, Lane::kH2d);
  // The copy back needs the one out, and may start once compute has passed
  // node 0 and the copy out.
  EXPECT_NE(std::find(steps[2].wait.begin(), steps[2].wait.end(), StepId{1}),
            steps[2].wait.end());
  EXPECT_EQ(steps[3].node, NodeId{1});
  EXPECT_NE(std::find(steps[3].wait.begin(), steps[3].wait.end(), StepId{2}),
            steps[3].wait.end());
  EXPECT_EQ(steps[4].node, NodeId{2});
  EXPECT_TRUE(steps[4].wait.empty());  // after node 1 on the same lane
  EXPECT_EQ(plan->sequence,
            (std::vector<NodeId>{NodeId{0}, NodeId{1}, NodeId{2}}));
}

TEST_F(LowerScheduleTest, GivesEveryInstanceABuffer) {
  const absl::StatusOr<Plan> plan = Lower(WithCopies(), 1000);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(DeviceBuffers(*plan, 2).size(), 2u);  // before and after the copies
  const auto on_host = std::count_if(
      plan->buffers.begin(), plan->buffers.end(),
      [](const Buffer& buffer) { return buffer.space == Space::kHost; });
  EXPECT_EQ(on_host, 1);
  EXPECT_EQ(plan->host_bytes, 100);
  const Step& gradient = plan->steps[3];
  ASSERT_NE(gradient.workspace, kNoBuffer);
  EXPECT_EQ(plan->buffer(gradient.workspace).bytes, 10);
  EXPECT_EQ(plan->buffer(gradient.workspace).value, kNoValue);
  ASSERT_EQ(gradient.in.size(), 1u);
  EXPECT_EQ(gradient.in[0], plan->steps[2].to);
}

TEST_F(LowerScheduleTest, UpdatesInPlaceAtTheWeightsAddress) {
  const absl::StatusOr<Plan> plan = Lower(GivenOrder(model_), 1000);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(DeviceBuffers(*plan, 0).size(), 1u);
  ASSERT_EQ(DeviceBuffers(*plan, 4).size(), 1u);
  EXPECT_EQ(DeviceBuffers(*plan, 0)[0].offset,
            DeviceBuffers(*plan, 4)[0].offset);
}

// Buffers that are alive together lie apart, and all lie within the arena.
TEST_F(LowerScheduleTest, KeepsBuffersAliveTogetherApart) {
  for (const Schedule& schedule : {GivenOrder(model_), WithCopies()}) {
    const absl::StatusOr<Plan> plan = Lower(schedule, 1000);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (size_t p = 0; p < plan->steps.size(); ++p) {
      const Step& step = plan->steps[p];
      std::vector<BufferId> used = step.in;
      for (BufferId out : step.out) {
        const bool in_place = plan->buffer(out).value == ValueId{4};
        if (!in_place) used.push_back(out);
      }
      if (step.workspace != kNoBuffer) used.push_back(step.workspace);
      for (size_t a = 0; a < used.size(); ++a) {
        const Buffer& one = plan->buffer(used[a]);
        EXPECT_EQ(one.offset % 100, 0);
        EXPECT_LE(one.offset + one.bytes, plan->arena_bytes);
        for (size_t b = a + 1; b < used.size(); ++b) {
          const Buffer& two = plan->buffer(used[b]);
          EXPECT_TRUE(one.offset + one.bytes <= two.offset ||
                      two.offset + two.bytes <= one.offset);
        }
      }
    }
  }
}

TEST_F(LowerScheduleTest, SaysHowHighTheLowestLayoutIsWhereNoneFits) {
  const Schedule given = GivenOrder(model_);
  const absl::StatusOr<Plan> tightest = Lower(given, 1, /*tightest=*/true);
  ASSERT_TRUE(tightest.ok()) << tightest.status();
  EXPECT_EQ(tightest->budget_bytes, tightest->arena_bytes);
  EXPECT_EQ(tightest->arena_bytes, FindLifetimes(model_, given).raw_peak_bytes);
  PackReport report;
  const absl::StatusOr<Plan> none =
      Lower(given, tightest->arena_bytes - 1, false, &report);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.height_bytes, tightest->arena_bytes);
}

TEST_F(LowerScheduleTest, RefusesMoreHostBytesThanTheMachineHas) {
  Problem small_host = problem_;
  small_host.machine->host_bytes = 99;
  const SearchModel model = MakeSearchModel(small_host, true, true);
  EXPECT_EQ(LowerSchedule(model, WithCopies(), {.budget_bytes = 1000})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace loadline::planner
