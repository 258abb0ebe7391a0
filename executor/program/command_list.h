// A plan lowered to the commands of one step: a flat list that a single thread
// can submit without blocking any lane.
#ifndef LOADLINE_EXECUTOR_PROGRAM_COMMAND_LIST_H_
#define LOADLINE_EXECUTOR_PROGRAM_COMMAND_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/program/placement.h"
#include "executor/program/poison.h"
#include "executor/program/uploads.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

struct PreparedLaunch {
  // Of the graph, or of CommandList::codecs: an encode or decode step.
  models::NodeId node{-1};
  bool is_codec = false;
  std::vector<Region> inputs;  // as the node's inputs; kNoRegion: absent
  std::vector<Region> outputs;
  Region workspace = kNoRegion;
  int32_t trace_slot = -1;
  const char* name = "";
};

struct Command {
  enum class Kind { kWait, kLaunch, kCopy, kFill, kRecord };
  Kind kind = Kind::kLaunch;
  Lane lane = Lane::kCompute;
  EventId event = kNoEvent;  // kWait, kRecord
  int32_t launch = -1;       // kLaunch: position in `launches`
  CopyArgs copy;             // kCopy
  int32_t upload = -1;       // kCopy of an input: position in `uploads`
  FreedBytes fill;           // kFill
};

struct CommandList {
  std::vector<Command> commands;
  std::vector<PreparedLaunch> launches;
  // An Encode and a Decode for each value and codec of the plan.
  models::Graph codecs;
  // Their copies come first; CopyArgs::upload is for the caller to set.
  Uploads uploads;
  int32_t event_count = 0;
  int32_t max_operands = 0;
};

// One event per step that another lane waits for; waits within a lane need
// none. Inputs of `least_upload_bytes` are uploaded. `poison`: freed bytes are
// filled after their last use (poison.h). Trace slots are positions in
// plan.steps; names are those of the problem (TraceLabel), which must outlive
// the list. Unimplemented: variants, and codecs that models/ops/codec.h does
// not have. FailedPrecondition: the plan does not belong to the graph.
absl::StatusOr<CommandList> LowerPlan(const models::Graph& graph,
                                      const planner::Problem& problem,
                                      const planner::Plan& plan,
                                      const Placement& placement, bool poison,
                                      int64_t least_upload_bytes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_COMMAND_LIST_H_
