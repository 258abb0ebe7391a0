// The run loop. Load makes all decisions; a step only submits the command list.
// Tested in tests/executor/program/program_test.cc.
#include "executor/program/program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/device/node_label.h"
#include "executor/program/poison.h"
#include "planner/base/status_macros.h"
#include "planner/verify/verify.h"

namespace loadline::executor {
namespace {

// A copy of fewer bytes takes no longer than waking a lane's thread.
constexpr int64_t kLeastHostUploadBytes = int64_t{1} << 20;

absl::Status TooSmall(absl::string_view what, int64_t has, int64_t needed) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the device's ", what, " has ", has, " bytes; the plan needs ", needed));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> Load(const models::Graph& graph,
                                              const planner::Problem& problem,
                                              const planner::Plan& plan,
                                              Device& device,
                                              const LoadOptions& options) {
  if (!problem.addresses) {
    return absl::FailedPreconditionError(
        "a plan without addresses cannot be run");
  }
  LOADLINE_RETURN_IF_ERROR(planner::Verify(problem, plan));
  std::unique_ptr<Program> program(new Program());
  program->graph_ = &graph;
  program->problem_ = &problem;
  program->plan_ = &plan;
  program->device_ = &device;
  LOADLINE_ASSIGN_OR_RETURN(program->placement_,
                            PlaceValues(graph, problem, plan));
  LOADLINE_ASSIGN_OR_RETURN(
      program->list_,
      LowerPlan(graph, problem, plan, program->placement_, options.poison,
                options.least_upload_bytes.value_or(
                    device.is_host() ? kLeastHostUploadBytes : 0)));
  program->ConnectUploads();
  LOADLINE_RETURN_IF_ERROR(program->PrepareKernels());

  const ArenaSpec needed = {.arena_bytes = plan.arena_bytes,
                            .host_bytes = plan.host_bytes,
                            .upload_bytes = program->list_.uploads.bytes,
                            .event_count = program->list_.event_count,
                            .max_operands = program->list_.max_operands};
  if (!device.has_arena()) {
    LOADLINE_RETURN_IF_ERROR(device.CreateArena(needed));
  }
  LOADLINE_RETURN_IF_ERROR(program->CheckArena(needed));
  if (options.trace) {
    LOADLINE_RETURN_IF_ERROR(device.EnableTrace(static_cast<int32_t>(
        plan.steps.size() + program->list_.uploads.uploads.size())));
  }
  LOADLINE_RETURN_IF_ERROR(program->WriteInitial(options));
  return program;
}

// The commands have the places of the addresses, not the addresses.
void Program::ConnectUploads() {
  sources_.resize(list_.uploads.uploads.size());
  uploaded_.resize(graph_->inputs.size(), false);
  for (const Upload& upload : list_.uploads.uploads) {
    uploaded_[upload.input] = true;
  }
  for (Command& command : list_.commands) {
    if (command.upload < 0) continue;
    command.copy.upload = &sources_[static_cast<size_t>(command.upload)];
  }
}

Program::~Program() { device_->Forget(captured_step_); }

const models::Node& Program::NodeOf(const PreparedLaunch& launch) const {
  return (launch.is_codec ? list_.codecs : *graph_).node(launch.node);
}

std::unique_ptr<Kernel>& Program::KernelOf(const PreparedLaunch& launch) {
  return (launch.is_codec ? codecs_ : kernels_)[models::Index(launch.node)];
}

absl::Status Program::PrepareKernels() {
  kernels_.resize(graph_->nodes.size());
  codecs_.resize(list_.codecs.nodes.size());
  std::set<std::string> lacking;
  std::string first;
  for (const PreparedLaunch& launch : list_.launches) {
    const models::Node& node = NodeOf(launch);
    std::unique_ptr<Kernel>& kernel = KernelOf(launch);
    if (kernel == nullptr) {
      const models::Graph& of = launch.is_codec ? list_.codecs : *graph_;
      LOADLINE_ASSIGN_OR_RETURN(kernel, device_->Prepare(of, node));
    }
    const int64_t planned =
        IsPresent(launch.workspace) ? launch.workspace.bytes : 0;
    if (kernel->workspace_bytes() <= planned) continue;
    lacking.insert(node.name);
    if (lacking.size() > 1) continue;
    first = absl::StrCat(NodeLabel(node), " ", kernel->workspace_bytes(),
                         " bytes, not ", planned);
  }
  if (lacking.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan was made for another device (machine '",
      problem_->machine.has_value() ? problem_->machine->name : "",
      "'): on --device ", std::string(device_->name()), " ", lacking.size(),
      " of ", problem_->nodes.size(), " nodes need more workspace, ", first,
      "; plan again with this --device"));
}

absl::Status Program::CheckArena(const ArenaSpec& needed) const {
  const ArenaSpec& has = device_->arena();
  if (has.arena_bytes < needed.arena_bytes) {
    return TooSmall("arena", has.arena_bytes, needed.arena_bytes);
  }
  if (has.host_bytes < needed.host_bytes) {
    return TooSmall("host store", has.host_bytes, needed.host_bytes);
  }
  if (has.upload_bytes < needed.upload_bytes) {
    return TooSmall("memory for uploads", has.upload_bytes,
                    needed.upload_bytes);
  }
  if (has.event_count < needed.event_count ||
      has.max_operands < needed.max_operands) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the device has ", has.event_count, " events and ",
                     has.max_operands, " operands per launch; the plan needs ",
                     needed.event_count, " and ", needed.max_operands));
  }
  return absl::OkStatus();
}

absl::Status CheckHasContents(const models::Graph& graph) {
  for (const models::Value& value : graph.values) {
    if (IsPersistent(value.kind) &&
        (!value.initial.has_value() || value.initial->data == nullptr)) {
      return absl::FailedPreconditionError(
          absl::StrCat("persistent value ", value.name,
                       " has no contents (a file of weights is missing)"));
    }
  }
  return absl::OkStatus();
}

absl::Status Program::WriteInitial(const LoadOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckHasContents(*graph_));
  for (size_t v = 0; v < graph_->values.size(); ++v) {
    const models::Value& value = graph_->values[v];
    if (!IsPersistent(value.kind)) continue;
    const models::ValueId id{static_cast<int32_t>(v)};
    persistent_[value.name] = id;
    if (!placement_.home[v].has_value()) {
      untouched_[v].resize(value.type.bytes());
    }
    if (value.kind != models::ValueKind::kConstant) saved_.push_back(id);
    LOADLINE_RETURN_IF_ERROR(WritePersistent(value.name, *value.initial->data));
    if (options.written) options.written(id);
  }
  std::stable_partition(saved_.begin(), saved_.end(), [&](models::ValueId id) {
    return graph_->value(id).kind == models::ValueKind::kParameter;
  });
  for (size_t i = 0; i < graph_->outputs.size() && loss_output_ < 0; ++i) {
    const models::TensorType& type = graph_->value(graph_->outputs[i]).type;
    if (type.dtype == models::DType::kF32 && type.dims.empty()) {
      loss_output_ = static_cast<int32_t>(i);
    }
  }
  return absl::OkStatus();
}

absl::Status Program::Run(const StepScalars& scalars,
                          absl::Span<const std::byte* const> inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckSound());
  failed_ = true;  // until the step has ended without error
  scalars_ = scalars;
  LOADLINE_RETURN_IF_ERROR(WriteInputs(inputs));
  LOADLINE_RETURN_IF_ERROR(RunCommands());
  failed_ = false;
  return absl::OkStatus();
}

absl::StatusOr<float> Program::Step(const StepScalars& scalars,
                                    absl::Span<const std::byte* const> inputs) {
  if (loss_output_ < 0) {
    return absl::FailedPreconditionError(
        "the graph has no output of type f32[] to be the loss");
  }
  LOADLINE_RETURN_IF_ERROR(Run(scalars, inputs));
  float loss = 0;
  LOADLINE_RETURN_IF_ERROR(ReadOutput(
      static_cast<size_t>(loss_output_),
      absl::MakeSpan(reinterpret_cast<std::byte*>(&loss), sizeof(loss))));
  return loss;
}

absl::Status Program::CheckSound() const {
  if (!failed_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "an earlier step failed; the weights are unknown");
}

absl::Status Program::WriteInputs(absl::Span<const std::byte* const> inputs) {
  if (inputs.size() != graph_->inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a step of ", graph_->inputs.size(), " inputs was given ",
                     inputs.size()));
  }
  for (size_t u = 0; u < sources_.size(); ++u) {
    sources_[u] = inputs[list_.uploads.uploads[u].input];
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const models::ValueId id = graph_->inputs[i];
    const std::optional<Home>& home = placement_.home[models::Index(id)];
    // One that is not read by any step has no home.
    if (!home.has_value() || uploaded_[i]) continue;
    LOADLINE_RETURN_IF_ERROR(device_->Write(
        home->space, home->offset, inputs[i], graph_->value(id).type.bytes()));
  }
  return absl::OkStatus();
}

absl::Status Program::RunCommands() {
  LOADLINE_ASSIGN_OR_RETURN(const bool replayed,
                            device_->Replay(captured_step_));
  if (replayed) return device_->Synchronize();
  LOADLINE_RETURN_IF_ERROR(device_->BeginStep());
  for (const Command& command : list_.commands) {
    absl::Status status = RunCommand(command);
    if (!status.ok()) {
      device_->Abort();
      return status;
    }
  }
  LOADLINE_RETURN_IF_ERROR(device_->Synchronize());
  captured_step_ = device_->Capture();
  return absl::OkStatus();
}

absl::Status Program::RunCommand(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kWait:
      return device_->Wait(command.lane, command.event);
    case Command::Kind::kRecord:
      return device_->Record(command.lane, command.event);
    case Command::Kind::kFill:
      return device_->Fill(command.lane, command.fill.space,
                           command.fill.region, kPoisonByte);
    case Command::Kind::kCopy:
      return device_->Copy(command.copy);
    case Command::Kind::kLaunch:
      break;
  }
  const PreparedLaunch& launch = list_.launches[command.launch];
  absl::Status status = device_->Launch({.kernel = KernelOf(launch).get(),
                                         .inputs = launch.inputs,
                                         .outputs = launch.outputs,
                                         .workspace = launch.workspace,
                                         .scalars = &scalars_,
                                         .trace_slot = launch.trace_slot,
                                         .name = launch.name});
  if (status.ok()) return status;
  const models::Node& node = NodeOf(launch);
  const std::string who =
      launch.is_codec ? absl::StrCat("value ", node.name) : NodeLabel(node);
  if (absl::StartsWith(status.message(), who)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(who, ": ", std::string(status.message())));
}

std::vector<std::string> Program::UploadNames() const {
  std::vector<std::string> names;
  for (const Upload& upload : list_.uploads.uploads) {
    names.push_back(graph_->value(graph_->inputs[upload.input]).name);
  }
  return names;
}

absl::Status Program::ReadOutput(size_t i, absl::Span<std::byte> to) {
  if (i >= graph_->outputs.size()) {
    return absl::OutOfRangeError(absl::StrCat("no output ", i));
  }
  const int64_t bytes = graph_->value(graph_->outputs[i]).type.bytes();
  if (static_cast<int64_t>(to.size()) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("output ", i, " has ", bytes, " bytes, not ", to.size()));
  }
  const Home& home = placement_.outputs[i];
  return device_->Read(home.space, home.offset, to.data(), bytes);
}

absl::StatusOr<models::ValueId> Program::FindPersistent(absl::string_view name,
                                                        size_t bytes) const {
  const auto found = persistent_.find(std::string(name));
  if (found == persistent_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no parameter or state is named ", name));
  }
  const models::TensorType& type = graph_->value(found->second).type;
  if (static_cast<int64_t>(bytes) != type.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", type.ToString(), ", ", type.bytes(),
                     " bytes; it was given ", bytes));
  }
  return found->second;
}

absl::Status Program::ReadPersistent(absl::string_view name,
                                     absl::Span<std::byte> data) {
  LOADLINE_RETURN_IF_ERROR(CheckSound());
  LOADLINE_ASSIGN_OR_RETURN(const models::ValueId id,
                            FindPersistent(name, data.size()));
  const size_t v = models::Index(id);
  if (!placement_.home[v].has_value()) {
    std::copy(untouched_[v].begin(), untouched_[v].end(), data.begin());
    return absl::OkStatus();
  }
  return device_->Read(placement_.home[v]->space, placement_.home[v]->offset,
                       data.data(), static_cast<int64_t>(data.size()));
}

absl::Status Program::WritePersistent(absl::string_view name,
                                      absl::Span<const std::byte> data) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ValueId id,
                            FindPersistent(name, data.size()));
  const size_t v = models::Index(id);
  if (!placement_.home[v].has_value()) {
    std::copy(data.begin(), data.end(), untouched_[v].begin());
    return absl::OkStatus();
  }
  return device_->Write(placement_.home[v]->space, placement_.home[v]->offset,
                        data.data(), static_cast<int64_t>(data.size()));
}

}  // namespace loadline::executor
