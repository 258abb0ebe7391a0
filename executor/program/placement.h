// Locations of the values that exist before or after a step: inputs, persistent
// values, outputs.
#ifndef LOADLINE_EXECUTOR_PROGRAM_PLACEMENT_H_
#define LOADLINE_EXECUTOR_PROGRAM_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

struct Home {
  Space space = Space::kDevice;
  int64_t offset = 0;
  planner::BufferId buffer = planner::kNoBuffer;
};

struct Placement {
  // Storage root of every graph value.
  std::vector<models::ValueId> roots;
  // Where every graph value's bytes begin in its root's.
  std::vector<int64_t> offsets;
  // By graph value: location of an input or persistent value when a step
  // starts. None where no node of the step touches it.
  std::vector<std::optional<Home>> home;
  // By position in graph.outputs: the buffer that holds the output after a
  // step.
  std::vector<Home> outputs;
};

// FailedPrecondition: plan, problem and graph do not belong together.
absl::StatusOr<Placement> PlaceValues(const models::Graph& graph,
                                      const planner::Problem& problem,
                                      const planner::Plan& plan);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_PLACEMENT_H_
