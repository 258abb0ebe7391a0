// A profile is measured once and stored, so that the next run plans at once and
// makes the same plan. Tested by tests/tools/pipeline/machine_profile_test.cc;
// calibration by the runs of tests/end_to_end.
#include "tools/pipeline/machine_profile.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/measure/calibrate.h"
#include "executor/measure/calibrate_step.h"
#include "executor/measure/other_programs.h"
#include "executor/measure/resident_memory.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "planner/base/file_lock.h"
#include "planner/base/status_macros.h"
#include "planner/problem/known_machines.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/codec_graph.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/warn_of_other_programs.h"

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

// As a shell's "~": services and containers may run without the variable.
std::string HomeFolder() {
  const std::string home = Environment("HOME");
  if (!home.empty()) return home;
  passwd entry;
  passwd* found = nullptr;
  std::array<char, 1 << 14> texts;
  getpwuid_r(getuid(), &entry, texts.data(), texts.size(), &found);
  return found == nullptr ? "" : found->pw_dir;
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

bool IsMeasured(const models::Graph& graph, const models::Node& node,
                const planner::Machine& machine) {
  return machine.ops.count(models::OperatorKey(graph, node)) > 0;
}

// The graph with only the nodes whose times the machine lacks.
models::Graph Unmeasured(const models::Graph& graph,
                         const planner::Machine& machine) {
  models::Graph rest = graph;
  rest.nodes.clear();
  for (const models::Node& node : graph.nodes) {
    if (models::IsView(node) || IsMeasured(graph, node, machine)) continue;
    rest.nodes.push_back(node);
  }
  return rest;
}

// Measures operators inside the step `plan`, if there is one and it is small
// enough to run, otherwise one by one.
absl::StatusOr<std::map<std::string, int64_t>> MeasureOperators(
    const models::Graph& graph, const models::Graph& rest,
    const planner::Problem& problem, const planner::Plan* plan,
    executor::CalibrateOptions options, executor::Device& device) {
  if (rest.nodes.empty()) return std::map<std::string, int64_t>();
  int64_t most_bytes = problem.machine->device_bytes / 2;
  if (device.is_host()) most_bytes = std::min(most_bytes, kMostStepBytes);
  if (plan == nullptr || plan->arena_bytes > most_bytes) {
    return executor::Calibrate(rest, device, options);
  }
  return executor::CalibrateStep(graph, problem, *plan, device, options);
}

// Measures encodes and decodes one by one, after the step's own operators.
absl::Status MeasureCodecs(const models::Graph& codecs,
                           const executor::CalibrateOptions& options,
                           const std::string& device,
                           planner::Machine* machine) {
  if (codecs.nodes.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const auto made, MakeDevice(device));
  LOADLINE_ASSIGN_OR_RETURN(auto times,
                            executor::Calibrate(codecs, *made, options));
  machine->ops.merge(std::move(times));
  return absl::OkStatus();
}

// On a CPU the arena of a measured step is memory of the machine that the
// budget is about. Elsewhere, and without a budget, everything is kept.
bool IsBounded(const PlanFlags& flags) {
  return flags.device == kCpu && !flags.budget.empty();
}

// The file beside a kept profile that says why it is provisional.
std::string ProvisionalMark(const std::string& path) {
  return absl::StrCat(path, ".provisional");
}

// The kept profile of this machine, with its mark. A nominal one, which
// somebody has put there, is of no machine that is here.
absl::StatusOr<planner::Machine> ReadKeptProfile(const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine, ReadMachineFile(path));
  if (machine.nominal) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a nominal profile, which was not measured"));
  }
  const std::string mark = ProvisionalMark(path);
  if (!fs::exists(mark)) return machine;
  LOADLINE_ASSIGN_OR_RETURN(const std::string why, ReadFile(mark));
  machine.provisional = std::string(absl::StripAsciiWhitespace(why));
  return machine;
}

// A request for a plan to measure in: found quickly, or not at all.
absl::StatusOr<PlanRequest> MeasuringRequest(const StepFlags& flags) {
  PlanFlags plan = flags.plan;
  plan.time_limit.clear();
  LOADLINE_ASSIGN_OR_RETURN(
      PlanRequest request,
      ReadPlanRequest(plan, {.effort = planner::Effort::kQuick}));
  request.options.allow_retries = false;
  return request;
}

// The budget in bytes; for the smallest one, a bound that no plan is below.
absl::StatusOr<int64_t> BudgetBytes(const planner::Problem& problem,
                                    const PlanRequest& request,
                                    const planner::Plan& keep_everything) {
  if (request.budget->kind != planner::Budget::Kind::kSmallest) {
    return RequestedBytes(problem, request, keep_everything);
  }
  LOADLINE_ASSIGN_OR_RETURN(const planner::PeakFloor floor,
                            planner::FindPeakFloor(problem, request.options));
  return floor.bytes;
}

// The budget of a step whose machine has not been measured: bytes do not depend
// on times.
absl::StatusOr<int64_t> BudgetBytesOf(const StepFlags& flags,
                                      const models::Graph& graph) {
  planner::Machine any;
  any.name = "not measured";
  any.d2h.bytes_per_s = any.h2d.bytes_per_s = 1e9;
  any.host_bytes = std::numeric_limits<int64_t>::max();
  any.rates = planner::Rates{.matmul_flop_per_s = {{"f32", 1e9}},
                             .memory_bytes_per_s = 1e9};
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Problem problem,
                            PoseStep(graph, "measuring", any, *device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan keep_everything,
                            planner::KeepEverything(problem));
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request, MeasuringRequest(flags));
  return BudgetBytes(problem, request, keep_everything);
}

// The plan to measure in; none if the search finds none.
absl::StatusOr<std::optional<planner::Plan>> MeasuringPlan(
    const StepFlags& flags, const planner::Problem& problem,
    planner::Plan keep_everything, int64_t most_bytes,
    const std::atomic<bool>* stop) {
  if (keep_everything.arena_bytes <= most_bytes) {
    return std::optional(std::move(keep_everything));
  }
  LOADLINE_ASSIGN_OR_RETURN(PlanRequest request, MeasuringRequest(flags));
  request.options.cancel = stop;
  // Even for the smallest budget: what a short search finds there can be twice
  // what the plan takes that runs afterwards.
  request.options.budget_bytes = most_bytes;
  auto plan = planner::Solve(problem, request.options);
  if (plan.ok()) return std::optional(*std::move(plan));
  if (absl::IsResourceExhausted(plan.status())) {
    return std::optional<planner::Plan>();
  }
  return plan.status();
}

}  // namespace

absl::Status CheckIsHere(const planner::Machine& machine) {
  if (!machine.nominal) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--machine ", machine.name,
      ": a nominal profile, from a data sheet, can plan but not measure or "
      "run; leave --machine out to use this machine's profile"));
}

std::string OwnProfilePath(const std::string& device) {
  std::string folder = Environment("LOADLINE_CACHE");
  if (folder.empty()) {
    const std::string cache = Environment("XDG_CACHE_HOME");
    folder =
        cache.empty() ? HomeFolder() + "/.cache/loadline" : cache + "/loadline";
  }
  return absl::StrCat(folder, "/machine-", device, ".json");
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
  // Whatever the order in which the two files appear, a provisional profile is
  // never taken for another.
  const std::string mark = ProvisionalMark(path);
  if (!machine.provisional.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(mark, machine.provisional + "\n"));
  }
  LOADLINE_RETURN_IF_ERROR(
      WriteFile(path, planner::MachineToJson(machine) + "\n"));
  if (!machine.provisional.empty()) return absl::OkStatus();
  std::error_code error;
  fs::remove(mark, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(mark, ": ", error.message()));
}

absl::StatusOr<planner::Machine> AddToProfile(
    const std::string& path, const planner::Machine& measured) {
  LOADLINE_RETURN_IF_ERROR(MakeFolderOf(path));
  LOADLINE_ASSIGN_OR_RETURN(const planner::FileLock lock,
                            planner::FileLock::Acquire(path));
  absl::StatusOr<planner::Machine> machine = ReadKeptProfile(path);
  if (!machine.ok()) machine = measured;  // removed, or damaged
  AddMeasured(measured, &*machine);
  LOADLINE_RETURN_IF_ERROR(KeepProfile(path, *machine));
  return machine;
}

absl::StatusOr<planner::Machine> LoadProfile(const std::string& device,
                                             const std::string& path,
                                             const BytesLimit& limit) {
  if (IsName(path)) return NamedProfile(path);
  if (!path.empty()) return ReadMachineFile(path);
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
  const auto read_limit = [&]() -> absl::Status {
    if (!limit) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(most_bytes, limit());
    return absl::OkStatus();
  };
  const std::string own = OwnProfilePath(device);
  std::map<std::string, int64_t> ops;
  if (fs::exists(own)) {
    auto machine = ReadKeptProfile(own);
    if (machine.ok()) {
      if (machine->provisional.empty()) return machine;
      LOADLINE_RETURN_IF_ERROR(read_limit());
      if (!CanMeasureFully(most_bytes) &&
          machine->provisional != kNoHostStore) {
        return machine;
      }
      spdlog::info("measuring anew: {} was measured with {}", own,
                   machine->provisional);
      ops = std::move(machine->ops);
    } else {
      spdlog::warn("measuring anew: {}",
                   std::string(machine.status().message()));
    }
  }
  LOADLINE_RETURN_IF_ERROR(read_limit());
  spdlog::info("measuring this machine, once (kept in {})", own);
  const executor::OtherPrograms others;
  LOADLINE_ASSIGN_OR_RETURN(executor::MeasuredMachine measured,
                            MeasureDevice(device, most_bytes));
  WarnOfOtherPrograms(others, "this machine was", device, "");
  measured.machine.ops = std::move(ops);
  const absl::Status kept = KeepProfile(own, measured.machine);
  if (!kept.ok()) WarnNotKept(kept);
  return std::move(measured.machine);
}

OperatorCount CountOperators(const models::Graph& graph,
                             const planner::Machine& machine) {
  OperatorCount count;
  for (const models::Node& node : graph.nodes) {
    if (models::IsView(node)) continue;
    ++count.all;
    if (!IsMeasured(graph, node, machine)) ++count.unmeasured;
  }
  return count;
}

absl::StatusOr<planner::Machine> CalibratedProfile(
    const StepFlags& flags, const models::Graph& graph,
    const std::atomic<bool>* stop) {
  const std::string& device = flags.plan.device;
  const std::string& path = flags.plan.machine;
  BytesLimit limit;
  if (IsBounded(flags.plan)) {
    limit = [&] { return BudgetBytesOf(flags, graph); };
  }
  LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                            LoadProfile(device, path, limit));
  LOADLINE_RETURN_IF_ERROR(CheckIsHere(machine));
  const models::Graph rest = Unmeasured(graph, machine);
  LOADLINE_ASSIGN_OR_RETURN(
      const models::Graph codecs,
      CodecGraph(graph, flags.plan.max_gradient_error > 0));
  const models::Graph unmeasured_codecs = Unmeasured(codecs, machine);
  if (rest.nodes.empty() && unmeasured_codecs.nodes.empty()) return machine;
  const size_t count = rest.nodes.size() + unmeasured_codecs.nodes.size();
  spdlog::info("measuring {} {} of the model, once", count,
               count == 1 ? "operator" : "operators");
  LOADLINE_ASSIGN_OR_RETURN(
      executor::Algorithms algorithms,
      executor::ChooseAlgorithms(rest, [&] { return MakeDevice(device); },
                                 {.stop = stop}));
  machine.algorithms.merge(std::move(algorithms));
  LOADLINE_ASSIGN_OR_RETURN(auto made, MakeDevice(device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Problem problem,
                            PoseStep(graph, "calibration", machine, *made));
  LOADLINE_ASSIGN_OR_RETURN(planner::Plan keep_everything,
                            planner::KeepEverything(problem));
  executor::CalibrateOptions options = {.least_ns = kLeastCalibrationNs,
                                        .stop = stop};
  if (limit) {
    LOADLINE_ASSIGN_OR_RETURN(options.most_bytes, limit());
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const std::optional<planner::Plan> plan,
      MeasuringPlan(flags, problem, std::move(keep_everything),
                    options.most_bytes, stop));
  executor::ReleaseFreedMemory();  // of the search, before the arena is made
  const executor::OtherPrograms others;
  LOADLINE_ASSIGN_OR_RETURN(
      auto times,
      MeasureOperators(graph, rest, problem,
                       plan.has_value() ? &*plan : nullptr, options, *made));
  machine.ops.merge(std::move(times));
  made.reset();  // the budget has room for one arena
  executor::ReleaseFreedMemory();
  LOADLINE_RETURN_IF_ERROR(
      MeasureCodecs(unmeasured_codecs, options, device, &machine));
  WarnOfOtherPrograms(others, "operators were", device, path);
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
                       &step.keep_everything,
                       {.least_ns = least_ns, .stop = stop}, *made));
  for (const auto& [key, ns] : times) machine.ops[key] = ns;
  if (machine.CanCopy()) {
    LOADLINE_RETURN_IF_ERROR(MeasureCopiesOf(device, machine));
  }
  return machine;
}

}  // namespace loadline::tools
