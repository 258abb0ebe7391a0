// A training step (or an evaluation step) loaded onto a device: a flat list of
// commands, run any number of times.
//
//   CpuDevice device;
//   LOADLINE_ASSIGN_OR_RETURN(auto program,
//                             Load(graph, problem, plan, device));
//   LOADLINE_ASSIGN_OR_RETURN(float loss, program->Step(scalars, inputs));
#ifndef LOADLINE_EXECUTOR_PROGRAM_PROGRAM_H_
#define LOADLINE_EXECUTOR_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/device/device.h"
#include "executor/program/command_list.h"
#include "executor/program/placement.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

struct LoadOptions {
  // Fill freed bytes of arena and host store after their last use (poison.h).
  // Slower; does not change results.
  bool poison = false;
  // Record when each step of the plan ran (trace.h).
  bool trace = false;
  // Inputs of at least so many bytes are uploaded by the lane h2d during the
  // step, the others before it. By default all, and 1 MiB where the device is
  // the host.
  std::optional<int64_t> least_upload_bytes = std::nullopt;
  // Called when the device has the initial contents of a persistent value; from
  // then on nothing of the program reads them in the graph. May be empty.
  std::function<void(models::ValueId)> written;
};

// FailedPrecondition, with the name, if a parameter, state or constant has no
// initial contents: then the step can be planned, but not run.
absl::Status CheckHasContents(const models::Graph& graph);

// Not thread-safe; uses the device exclusively during a call.
class Program {
 public:
  ~Program();
  // Runs the step once. `inputs` points to the data of each graph input, in the
  // graph's order; not read after the call. Allocates nothing when it succeeds.
  // After an error the persistent values are undefined and every later call
  // returns FailedPrecondition: load the program again.
  absl::Status Run(const StepScalars& scalars,
                   absl::Span<const std::byte* const> inputs);

  // Run; returns the loss, which is the first output of type f32[].
  absl::StatusOr<float> Step(const StepScalars& scalars,
                             absl::Span<const std::byte* const> inputs);

  // Copies output `i` of the last step to `to`, whose size must match its type.
  absl::Status ReadOutput(size_t i, absl::Span<std::byte> to);

  // Contents of a parameter, state or constant between steps. The size of
  // `data` must match its type. NotFound: no such value.
  absl::Status ReadPersistent(absl::string_view name,
                              absl::Span<std::byte> data);
  absl::Status WritePersistent(absl::string_view name,
                               absl::Span<const std::byte> data);

  const models::Graph& graph() const { return *graph_; }
  const planner::Problem& problem() const { return *problem_; }
  const planner::Plan& plan() const { return *plan_; }
  Device& device() { return *device_; }
  // The inputs that a lane uploads, in order. Device::trace() has them after
  // the plan's steps.
  std::vector<std::string> UploadNames() const;
  // Parameters, then states, each in the graph's order.
  const std::vector<models::ValueId>& saved_values() const { return saved_; }

 private:
  friend absl::StatusOr<std::unique_ptr<Program>> Load(
      const models::Graph& graph, const planner::Problem& problem,
      const planner::Plan& plan, Device& device, const LoadOptions& options);
  Program() = default;

  absl::Status PrepareKernels();
  void ConnectUploads();
  absl::Status CheckArena(const ArenaSpec& needed) const;
  absl::Status WriteInitial(const LoadOptions& options);
  absl::Status WriteInputs(absl::Span<const std::byte* const> inputs);
  absl::Status RunCommands();
  absl::Status CheckSound() const;
  absl::Status RunCommand(const Command& command);
  absl::StatusOr<models::ValueId> FindPersistent(absl::string_view name,
                                                 size_t bytes) const;

  const models::Graph* graph_ = nullptr;
  const planner::Problem* problem_ = nullptr;
  const planner::Plan* plan_ = nullptr;
  Device* device_ = nullptr;
  Placement placement_;
  CommandList list_;
  const models::Node& NodeOf(const PreparedLaunch& launch) const;
  std::unique_ptr<Kernel>& KernelOf(const PreparedLaunch& launch);

  std::vector<std::unique_ptr<Kernel>> kernels_;  // by graph node; may be null
  std::vector<std::unique_ptr<Kernel>> codecs_;   // by node of list_.codecs
  // Persistent values that no node touches, by graph value.
  std::map<size_t, std::vector<std::byte>> untouched_;
  std::vector<models::ValueId> saved_;
  std::map<std::string, models::ValueId> persistent_;
  // By upload: the caller's bytes in this step. Commands have its addresses.
  std::vector<const std::byte*> sources_;
  std::vector<bool> uploaded_;  // by input
  StepScalars scalars_;         // every launch reads them at this address
  int32_t loss_output_ = -1;
  // Set after the first run, on devices that capture steps.
  CapturedStep captured_step_ = kNotCaptured;
  bool failed_ = false;
};

// Verifies the plan (refuses what planner::Verify rejects), prepares one kernel
// per node, creates the device's arena of exactly the planned bytes if it has
// none, and writes the initial contents of persistent values to their homes.
// All four arguments must outlive the program. Errors:
//   FailedPrecondition  invalid plan; plan of another graph; kernels need more
//                       workspace than a plan for another device gives them
//   ResourceExhausted   the device's arena is smaller than planned
//   Unimplemented       an operator without a kernel, a variant, a codec that
//                       models/ops/codec.h does not have
absl::StatusOr<std::unique_ptr<Program>> Load(const models::Graph& graph,
                                              const planner::Problem& problem,
                                              const planner::Plan& plan,
                                              Device& device,
                                              const LoadOptions& options = {});

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_PROGRAM_H_
