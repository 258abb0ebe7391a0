// A buffer is freed by the one access that all its other accesses happen
// before. Happens-before is a vector clock: for each step and lane, the last
// step of that lane that has certainly ended when the step ends. In a valid
// plan the next user of the bytes happens after that access, hence after a fill
// that is placed between the access and its event. Tested in
// tests/executor/program/poison_test.cc.
#include "executor/program/poison.h"

#include <algorithm>
#include <array>

namespace loadline::executor {
namespace {

using LaneClock = std::array<int32_t, planner::kLaneCount>;  // step, -1: none

std::vector<LaneClock> Clocks(const planner::Plan& plan) {
  std::vector<LaneClock> clocks(plan.steps.size());
  std::array<int32_t, planner::kLaneCount> last;
  last.fill(-1);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    LaneClock clock;
    clock.fill(-1);
    const auto join = [&](int32_t step) {
      if (step < 0) return;
      for (int lane = 0; lane < planner::kLaneCount; ++lane) {
        clock[lane] = std::max(clock[lane], clocks[step][lane]);
      }
    };
    const auto lane = static_cast<size_t>(plan.steps[s].lane);
    join(last[lane]);
    for (planner::StepId wait : plan.steps[s].wait) {
      join(static_cast<int32_t>(planner::Index(wait)));
    }
    clock[lane] = static_cast<int32_t>(s);
    last[lane] = static_cast<int32_t>(s);
    clocks[s] = clock;
  }
  return clocks;
}

std::vector<std::vector<int32_t>> Accesses(const planner::Plan& plan) {
  std::vector<std::vector<int32_t>> accesses(plan.buffers.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    const auto touch = [&](planner::BufferId id) {
      if (id == planner::kNoBuffer) return;
      accesses[planner::Index(id)].push_back(static_cast<int32_t>(s));
    };
    for (planner::BufferId id : step.in) touch(id);
    for (planner::BufferId id : step.out) touch(id);
    touch(step.workspace);
    touch(step.from);
    touch(step.to);
  }
  return accesses;
}

// Whether `step` writes into `region` a buffer other than `self`: an in-place
// output has taken over the bytes. Occurs in the arena only.
bool TakenOver(const planner::Plan& plan, const planner::Step& step,
               size_t self, const Region& region) {
  for (planner::BufferId id : step.out) {
    const planner::Buffer& out = plan.buffer(id);
    if (planner::Index(id) != self && Overlap(region, {out.offset, out.bytes}))
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::vector<FreedBytes>> FreedAfterStep(
    const planner::Problem& problem, const planner::Plan& plan,
    const Placement& placement) {
  std::vector<std::vector<FreedBytes>> freed(plan.steps.size());
  const std::vector<LaneClock> clocks = Clocks(plan);
  const std::vector<std::vector<int32_t>> accesses = Accesses(plan);

  // Buffers that must survive the step: outputs, and homes of persistent
  // values.
  std::vector<bool> is_output(plan.buffers.size(), false);
  for (const Home& home : placement.outputs) {
    is_output[planner::Index(home.buffer)] = true;
  }
  std::vector<FreedBytes> homes;
  for (const std::optional<Home>& home : placement.home) {
    if (!home.has_value()) continue;
    const planner::Buffer& buffer = plan.buffer(home->buffer);
    if (problem.value(buffer.value).persistent) {
      homes.push_back({home->space, {buffer.offset, buffer.bytes}});
    }
  }

  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const planner::Buffer& buffer = plan.buffers[b];
    const Region region = {buffer.offset, buffer.bytes};
    if (buffer.bytes == 0 || is_output[b] || accesses[b].empty() ||
        std::any_of(homes.begin(), homes.end(), [&](const FreedBytes& home) {
          return home.space == buffer.space && Overlap(home.region, region);
        })) {
      continue;
    }
    const int32_t last = accesses[b].back();
    const bool ordered = std::all_of(
        accesses[b].begin(), accesses[b].end(), [&](int32_t access) {
          const auto lane = static_cast<size_t>(plan.steps[access].lane);
          return access <= clocks[last][lane];
        });
    if (ordered && (buffer.space == Space::kHost ||
                    !TakenOver(plan, plan.steps[last], b, region))) {
      freed[last].push_back({buffer.space, region});
    }
  }
  return freed;
}

}  // namespace loadline::executor
