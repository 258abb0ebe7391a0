// Uploads of a step's inputs: copies from the caller's memory on the lane h2d,
// as the plan's own copies are. A plan has inputs in the arena when a step
// begins, so an upload needs no bytes of its own; each lane waits for it before
// its first step that reads the input, and no longer.
#ifndef LOADLINE_EXECUTOR_PROGRAM_UPLOADS_H_
#define LOADLINE_EXECUTOR_PROGRAM_UPLOADS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/device.h"
#include "executor/program/placement.h"
#include "models/graph.h"
#include "planner/problem/plan.h"

namespace loadline::executor {

struct Upload {
  size_t input = 0;  // position in the graph's inputs
  // Its trace slot is the number of the plan's steps and, added to it, the
  // position in Uploads::uploads. `upload` is for the caller to set.
  CopyArgs copy;
};

struct Uploads {
  // In the order of their first readers.
  std::vector<Upload> uploads;
  int64_t bytes = 0;  // of ArenaSpec
  // By step of the plan: the upload that it waits for; -1: none. The lane h2d
  // has finished all uploads before that one as well.
  std::vector<int32_t> wait;
};

// `order`: positions in plan.steps in which they are submitted. Inputs of less
// than `least_bytes` have no upload, and so have those that no step reads.
Uploads PlanUploads(const models::Graph& graph, const planner::Plan& plan,
                    const Placement& placement,
                    const std::vector<size_t>& order, int64_t least_bytes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_UPLOADS_H_
