// Finds, measures and stores machine profiles.
#ifndef LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_
#define LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "planner/problem/machine.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// In all of these, `device` is a value of --device (tools/pipeline/device.h).

// The file with this machine's own profile: machine-cpu.json, machine-cuda.json
// or machine-emulated.json in $LOADLINE_CACHE, else $XDG_CACHE_HOME/loadline,
// else ~/.cache/loadline.
std::string OwnProfilePath(const std::string& device);

// What measuring may take of memory; called only if something is measured.
// Empty: no limit.
using BytesLimit = std::function<absl::StatusOr<int64_t>()>;

// The profile at `path`, or the known machine that --machine names instead
// (planner/problem/known_machines.h). "": this machine's own profile, which is
// measured (some seconds) and stored if there is none yet, if it cannot be read
// or is nominal, or if it is provisional and `most_bytes` now suffice.
absl::StatusOr<planner::Machine> LoadProfile(const std::string& device,
                                             const std::string& path,
                                             const BytesLimit& most_bytes = {});

// The same for the device, profile and budget of the flags, with a measured
// time for every operator of the graph on the device. New measurements are
// added to the file. On a CPU, measuring stays within the budget: operators are
// timed in a step that a short search plans for it; if it finds none, one by
// one, and those that are too large for the budget are not. `stop` may be null.
// InvalidArgument: as CheckIsHere.
absl::StatusOr<planner::Machine> CalibratedProfile(
    const StepFlags& flags, const models::Graph& graph,
    const std::atomic<bool>* stop);

// Operators of the graph whose times `machine` lacks, and all that have one.
struct OperatorCount {
  int64_t unmeasured = 0;
  int64_t all = 0;
};
OperatorCount CountOperators(const models::Graph& graph,
                             const planner::Machine& machine);

// Measures all operators of the graph and the copies anew, for `least_ns` of
// steps. Stores nothing. `stop` may be null.
absl::StatusOr<planner::Machine> MeasureNow(const std::string& device,
                                            const PlannedStep& step,
                                            int64_t least_ns,
                                            const std::atomic<bool>* stop);

// InvalidArgument: a nominal profile, whose machine is not this one.
absl::Status CheckIsHere(const planner::Machine& machine);

// Whether a plan is for a GPU whose kernels this build lacks. Their workspaces
// are unknown, and those of the CPU's kernels are far larger, so none are
// counted. Such a plan cannot run here.
inline bool IsElsewhere(const planner::Machine& machine, bool device_is_host) {
  return machine.nominal && device_is_host;
}

// Creates the folders of a path.
absl::Status MakeFolderOf(const std::string& path);

// Adds measured operators, with their algorithms, to the profile at `path`,
// under a lock, so that runs at the same time lose nothing; operators that are
// there keep their times. Returns the whole profile. Without a readable file
// there, `measured` is the profile.
absl::StatusOr<planner::Machine> AddToProfile(const std::string& path,
                                              const planner::Machine& measured);

// Writes a profile and creates its folders.
absl::Status KeepProfile(const std::string& path,
                         const planner::Machine& machine);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MACHINE_PROFILE_H_
