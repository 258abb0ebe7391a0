// A profile is measured once and stored, so that the next run plans at once and
// makes the same plan. Tested by tests/tools/pipeline/machine_profile_test.cc;
// calibration by the runs of tests/end_to_end.
#include "tools/pipeline/machine_profile.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/measure/calibrate.h"
#include "executor/measure/calibrate_step.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "planner/base/file_lock.h"
#include "planner/base/status_macros.h"
#include "planner/problem/known_machines.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

namespace fs = std::filesystem;

// Larger steps take seconds on a CPU, and their operands do not fit any cache.
constexpr int64_t kMostStepBytes = int64_t{2} << 30;
// Long enough for the median to ignore short bursts of other load.
constexpr int64_t kLeastCalibrationNs = 2'000'000'000;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Storing the profile is optional when planning: a failure gives a warning.
void WarnNotKept(const absl::Status& status) {
  spdlog::warn("the machine profile could not be kept: {}",
               std::string(status.message()));
}

// Adds the entries whose operators `machine` lacks, each with its algorithm:
// what another run measured in the meantime stays, as its plans were made with
// it.
void AddMeasured(const planner::Machine& measured, planner::Machine* machine) {
  for (const auto& [key, ns] : measured.ops) {
    if (!machine->ops.emplace(key, ns).second) continue;
    const auto algorithm = measured.algorithms.find(key);
    if (algorithm != measured.algorithms.end()) {
      machine->algorithms[key] = algorithm->second;
    }
  }
}

// Whether the text neither looks like a path nor is the path of a file.
bool IsName(const std::string& path) {
  std::error_code error;
  return !path.empty() && !absl::StrContains(path, '/') &&
         !absl::EndsWith(path, ".json") && !fs::exists(path, error);
}

absl::StatusOr<planner::Machine> NamedProfile(const std::string& name) {
  auto machine = planner::KnownMachine(name);
  if (machine.ok()) return machine;
  return absl::InvalidArgumentError(
      absl::StrCat("--machine ", name, ": there is no such file, and ",
                   machine.status().message()));
}

// The graph with only the nodes whose times the machine lacks.
models::Graph Unmeasured(const models::Graph& graph,
                         const planner::Machine& machine) {
  models::Graph rest = graph;
  rest.nodes.clear();
  for (const models::Node& node : graph.nodes) {
    if (models::IsView(node)) continue;
    if (machine.ops.count(models::OperatorKey(graph, node)) == 0) {
      rest.nodes.push_back(node);
    }
  }
  return rest;
}

// Measures operators inside the step if it is small enough to run with
// everything kept, otherwise one by one.
absl::StatusOr<std::map<std::string, int64_t>> MeasureOperators(
    const models::Graph& graph, const models::Graph& rest,
    const planner::Problem& problem, const planner::Plan& keep_everything,
    int64_t least_ns, executor::Device& device, const std::atomic<bool>* stop) {
  executor::CalibrateOptions options;
  options.stop = stop;
  options.least_ns = least_ns;
  int64_t most_bytes = problem.machine->device_bytes / 2;
  if (device.is_host()) most_bytes = std::min(most_bytes, kMostStepBytes);
  if (keep_everything.arena_bytes > most_bytes) {
    return executor::Calibrate(rest, device, options);
  }
  return executor::CalibrateStep(graph, problem, keep_everything, device,
                                 options);
}

}  // namespace

absl::Status CheckIsHere(const planner::Machine& machine) {
  if (!machine.nominal) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--machine ", machine.name,
      ": a nominal profile (extra.nominal) is of no machine that is here, and "
      "this one is where operators are measured and steps run; leave --machine "
      "out"));
}

std::string OwnProfilePath(const std::string& device) {
  std::string folder = Environment("LOADLINE_CACHE");
  if (folder.empty()) {
    const std::string cache = Environment("XDG_CACHE_HOME");
    folder = cache.empty() ? Environment("HOME") + "/.cache/loadline"
                           : cache + "/loadline";
  }
  return folder + (device == kCpu ? "/machine.json" : "/machine-cuda.json");
}

absl::Status MakeFolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat(folder.string(), ": ", error.message()));
  }
  return absl::OkStatus();
}

absl::Status KeepProfile(const std::string& path,
                         const planner::Machine& machine) {
  LOADLINE_RETURN_IF_ERROR(MakeFolderOf(path));
  return WriteFile(path, planner::MachineToJson(machine) + "\n");
}

absl::StatusOr<planner::Machine> AddToProfile(
    const std::string& path, const planner::Machine& measured) {
  LOADLINE_RETURN_IF_ERROR(MakeFolderOf(path));
  LOADLINE_ASSIGN_OR_RETURN(const planner::FileLock lock,
                            planner::FileLock::Acquire(path));
  absl::StatusOr<planner::Machine> machine = ReadMachineFile(path);
  if (!machine.ok()) machine = measured;  // removed, or damaged
  AddMeasured(measured, &*machine);
  LOADLINE_RETURN_IF_ERROR(KeepProfile(path, *machine));
  return machine;
}

absl::StatusOr<planner::Machine> LoadProfile(const std::string& device,
                                             const std::string& path) {
  if (IsName(path)) return NamedProfile(path);
  if (!path.empty()) return ReadMachineFile(path);
  const std::string own = OwnProfilePath(device);
  if (fs::exists(own)) {
    auto machine = ReadMachineFile(own);
    if (machine.ok()) return machine;
    spdlog::warn("measuring anew: {}", std::string(machine.status().message()));
  }
  spdlog::info("measuring this machine, once (kept in {})", own);
  LOADLINE_ASSIGN_OR_RETURN(executor::MeasuredMachine measured,
                            MeasureDevice(device));
  const absl::Status kept = KeepProfile(own, measured.machine);
  if (!kept.ok()) WarnNotKept(kept);
  return std::move(measured.machine);
}

absl::StatusOr<planner::Machine> CalibratedProfile(
    const std::string& device, const std::string& path,
    const models::Graph& graph, const std::atomic<bool>* stop) {
  LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                            LoadProfile(device, path));
  LOADLINE_RETURN_IF_ERROR(CheckIsHere(machine));
  const models::Graph rest = Unmeasured(graph, machine);
  if (rest.nodes.empty()) return machine;
  spdlog::info("measuring {} operators of the model, once", rest.nodes.size());
  LOADLINE_ASSIGN_OR_RETURN(
      executor::Algorithms algorithms,
      executor::ChooseAlgorithms(rest, [&] { return MakeDevice(device); },
                                 {.stop = stop}));
  machine.algorithms.merge(std::move(algorithms));
  LOADLINE_ASSIGN_OR_RETURN(const auto made, MakeDevice(device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Problem problem,
                            PoseStep(graph, "calibration", machine, *made));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan keep_everything,
                            planner::KeepEverything(problem));
  LOADLINE_ASSIGN_OR_RETURN(
      auto times, MeasureOperators(graph, rest, problem, keep_everything,
                                   kLeastCalibrationNs, *made, stop));
  machine.ops.merge(std::move(times));
  auto kept =
      AddToProfile(path.empty() ? OwnProfilePath(device) : path, machine);
  if (kept.ok()) return kept;
  WarnNotKept(kept.status());
  return machine;
}

absl::StatusOr<planner::Machine> MeasureNow(const std::string& device,
                                            const PlannedStep& step,
                                            int64_t least_ns,
                                            const std::atomic<bool>* stop) {
  planner::Machine machine = step.machine;
  LOADLINE_ASSIGN_OR_RETURN(const auto made, MakeDevice(device));
  made->SetAlgorithms(machine.algorithms);
  LOADLINE_ASSIGN_OR_RETURN(
      const auto times,
      MeasureOperators(step.graph, step.graph, step.problem,
                       step.keep_everything, least_ns, *made, stop));
  for (const auto& [key, ns] : times) machine.ops[key] = ns;
  LOADLINE_RETURN_IF_ERROR(MeasureCopiesOf(device, machine));
  return machine;
}

}  // namespace loadline::tools
