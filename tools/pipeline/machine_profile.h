// Where a machine profile comes from.
#ifndef LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_
#define LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "planner/problem/machine.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// In all of these `device` is what --device names (tools/pipeline/device.h).

// The file where this machine's own profile is kept: machine.json, of a GPU
// machine-cuda.json, in $LOADLINE_CACHE, else $XDG_CACHE_HOME/loadline, else
// ~/.cache/loadline.
std::string OwnProfilePath(const std::string& device);

// The profile at `path`, or what --machine may name instead of a file
// (planner/problem/known_machines.h); "" is this machine's own, measured (some
// seconds) and kept where there is none yet.
absl::StatusOr<planner::Machine> LoadProfile(const std::string& device,
                                             const std::string& path);

// The same, with a measured time for every operator of the graph on the
// device; what had to be measured is added to the file. `stop` may be null.
// InvalidArgument: as CheckIsHere.
absl::StatusOr<planner::Machine> CalibratedProfile(
    const std::string& device, const std::string& path,
    const models::Graph& graph, const std::atomic<bool>* stop);

// The machine as it is at this moment: all operators of the graph and the
// copies measured anew, for `least_ns` of steps. Kept nowhere. `stop` may be
// null.
absl::StatusOr<planner::Machine> MeasureNow(const std::string& device,
                                            const PlannedStep& step,
                                            int64_t least_ns,
                                            const std::atomic<bool>* stop);

// InvalidArgument: a nominal profile.
absl::Status CheckIsHere(const planner::Machine& machine);

// Whether a plan is for a GPU whose kernels are not here: nobody knows their
// workspaces, and those of a CPU's are far larger, so none are counted. It
// cannot be run.
inline bool IsElsewhere(const planner::Machine& machine, bool device_is_host) {
  return machine.nominal && device_is_host;
}

// Makes the folders above a path.
absl::Status MakeFolderOf(const std::string& path);

// Writes a profile, with the folders above it.
absl::Status KeepProfile(const std::string& path,
                         const planner::Machine& machine);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_
