// The needed waits order the steps exactly as the plan does, and none of them
// is redundant: random plans compared with brute-force reachability.
#include "executor/program/needed_waits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace loadline::executor {
namespace {

constexpr int kProgramSteps = 24;

using Waits = std::vector<std::vector<planner::StepId>>;
using Order = std::vector<std::vector<bool>>;  // [a][b]: a ends before b starts

planner::Plan RandomPlan(uint64_t seed) {
  std::mt19937_64 random(seed);
  planner::Plan plan;
  for (int s = 0; s < kProgramSteps; ++s) {
    planner::Step step;
    step.lane = static_cast<planner::Lane>(random() % planner::kLaneCount);
    for (int waits = static_cast<int>(random() % 4); s > 0 && waits > 0;
         --waits) {
      step.wait.push_back(planner::StepId{static_cast<int32_t>(random() % s)});
    }
    plan.steps.push_back(step);
  }
  return plan;
}

Waits AllWaits(const planner::Plan& plan) {
  Waits waits;
  for (const planner::Step& step : plan.steps) waits.push_back(step.wait);
  return waits;
}

Order HappensBefore(const planner::Plan& plan, const Waits& waits) {
  const size_t count = plan.steps.size();
  Order before(count, std::vector<bool>(count, false));
  for (size_t s = 0; s < count; ++s) {
    for (planner::StepId wait : waits[s])
      before[planner::Index(wait)][s] = true;
    for (size_t earlier = 0; earlier < s; ++earlier) {
      if (plan.steps[earlier].lane == plan.steps[s].lane) {
        before[earlier][s] = true;
      }
    }
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; before[a][k] && b < count; ++b) {
        if (before[k][b]) before[a][b] = true;
      }
    }
  }
  return before;
}

// An order with each step after its predecessors on the lane and its waits.
std::vector<size_t> RandomOrder(const planner::Plan& plan, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> order;
  std::vector<bool> taken(plan.steps.size(), false);
  while (order.size() < plan.steps.size()) {
    const size_t s = random() % plan.steps.size();
    bool ready = !taken[s];
    for (planner::StepId wait : plan.steps[s].wait) {
      ready = ready && taken[planner::Index(wait)];
    }
    for (size_t earlier = 0; earlier < s; ++earlier) {
      ready = ready && (taken[earlier] ||
                        plan.steps[earlier].lane != plan.steps[s].lane);
    }
    if (!ready) continue;
    taken[s] = true;
    order.push_back(s);
  }
  return order;
}

size_t Count(const Waits& waits) {
  size_t count = 0;
  for (const auto& of_step : waits) count += of_step.size();
  return count;
}

TEST(NeededWaits, OrderTheStepsAsAllWaitsDo) {
  size_t all = 0, needed_count = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const planner::Plan plan = RandomPlan(seed);
    const Waits needed = NeededWaits(plan, RandomOrder(plan, seed));
    EXPECT_EQ(HappensBefore(plan, needed), HappensBefore(plan, AllWaits(plan)))
        << "seed " << seed;
    all += Count(AllWaits(plan));
    needed_count += Count(needed);
  }
  EXPECT_LT(needed_count, all * 2 / 3);
}

TEST(NeededWaits, HaveNoneThatTheOthersImply) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const planner::Plan plan = RandomPlan(seed);
    const Waits needed = NeededWaits(plan, RandomOrder(plan, seed));
    const Order before = HappensBefore(plan, needed);
    for (size_t s = 0; s < needed.size(); ++s) {
      for (size_t w = 0; w < needed[s].size(); ++w) {
        Waits fewer = needed;
        fewer[s].erase(fewer[s].begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_NE(HappensBefore(plan, fewer), before)
            << "seed " << seed << " step " << s;
      }
    }
  }
}

}  // namespace
}  // namespace loadline::executor
