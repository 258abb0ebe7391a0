// Debug mode that fills freed bytes, so that reading a freed buffer is noticed.
#ifndef LOADLINE_EXECUTOR_PROGRAM_POISON_H_
#define LOADLINE_EXECUTOR_PROGRAM_POISON_H_

#include <cstdint>
#include <vector>

#include "executor/device/device.h"
#include "executor/program/placement.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

// A NaN in every float type and -1 in every signed integer.
inline constexpr uint8_t kPoisonByte = 0xFF;

struct FreedBytes {
  Space space = Space::kDevice;
  Region region;
};

// By step: bytes of the arena and the host store that are not read after it has
// ended, workspaces included. Filling them on the step's lane before its event
// is recorded changes nothing that a valid plan computes. Bytes with last uses
// on several lanes, unordered among each other, are left alone.
std::vector<std::vector<FreedBytes>> FreedAfterStep(
    const planner::Problem& problem, const planner::Plan& plan,
    const Placement& placement);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_POISON_H_
