// Runs a forward pass over a few batches of the training data, for what it
// leaves in its states: ranges that were observed, statistics of batches.
#ifndef LOADLINE_TOOLS_PIPELINE_RUN_FORWARD_H_
#define LOADLINE_TOOLS_PIPELINE_RUN_FORWARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/train/data.h"
#include "models/graph.h"
#include "planner/problem/machine.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// What such passes of one run have in common. Batches are those that the run
// draws from its first step on.
struct ForwardRun {
  const StepFlags& flags;           // with the budget that the plan keeps
  const planner::Machine& machine;  // prices for the plan
  const executor::DataSet& data;
  uint64_t seed = 0;
  bool shuffle = true;
  const std::atomic<bool>* cancel = nullptr;  // may be null
  // A device without an arena; the one before is destroyed first.
  std::function<absl::StatusOr<std::unique_ptr<executor::Device>>()> device;
};

// `graph` begins with `state`, is planned within the budget and runs over the
// first `batches` batches. After each, `ran` gets the values that the graph
// updates. Errors: those of planning and running; Cancelled.
absl::Status RunForward(models::Graph graph, const RunState& state,
                        int64_t batches, const ForwardRun& run,
                        const std::function<void(const RunState&)>& ran);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RUN_FORWARD_H_
