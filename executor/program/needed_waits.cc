// Vector clocks (Fidge 1988, Mattern 1989): for each step, how much of every
// lane is known to have ended. A wait that this already implies is omitted,
// because each submitted wait costs a GPU some microseconds of compute. Tested
// in tests/executor/program/needed_waits_test.cc.
#include "executor/program/needed_waits.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace loadline::executor {
namespace {

// Number of steps of each lane that have ended.
using Clock = std::array<int64_t, planner::kLaneCount>;

void Join(const Clock& other, Clock& clock) {
  for (size_t l = 0; l < clock.size(); ++l) {
    clock[l] = std::max(clock[l], other[l]);
  }
}

}  // namespace

std::vector<std::vector<planner::StepId>> NeededWaits(
    const planner::Plan& plan, const std::vector<size_t>& order) {
  std::vector<std::vector<planner::StepId>> needed(plan.steps.size());
  std::vector<Clock> ended(plan.steps.size());  // once the step has
  std::vector<size_t> place(plan.steps.size());
  std::array<Clock, planner::kLaneCount> lanes{};
  for (size_t p = 0; p < order.size(); ++p) {
    const planner::Step& step = plan.steps[order[p]];
    Clock& clock = lanes[static_cast<size_t>(step.lane)];
    std::vector<planner::StepId> waits = step.wait;
    // Latest steps first: they imply the most.
    std::sort(waits.begin(), waits.end(),
              [&](planner::StepId a, planner::StepId b) {
                return place[planner::Index(a)] > place[planner::Index(b)];
              });
    for (planner::StepId wait : waits) {
      const size_t other =
          static_cast<size_t>(plan.steps[planner::Index(wait)].lane);
      const Clock& then = ended[planner::Index(wait)];
      if (clock[other] >= then[other]) continue;
      needed[order[p]].push_back(wait);
      Join(then, clock);
    }
    ++clock[static_cast<size_t>(step.lane)];
    ended[order[p]] = clock;
    place[order[p]] = p;
  }
  return needed;
}

}  // namespace loadline::executor
