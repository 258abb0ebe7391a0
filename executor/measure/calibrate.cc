// Measures operators one by one, for steps too large to run whole
// (calibrate_step.h); in those an operator's inputs are not in the caches
// anyway. Every operand has a place of its own in one arena, as in a step
// without in-place updates. Each distinct operator is launched a few times,
// with the caches emptied between runs. Tested in
// tests/executor/measure/measure_test.cc.
#include "executor/measure/calibrate.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "planner/base/align.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Contents of a large operand repeat after this many bytes.
constexpr int64_t kContentsBytes = int64_t{4} << 20;

struct Trial {
  const models::Node* node = nullptr;
  std::string key;
  std::string algorithm;  // empty: the only one
  std::unique_ptr<Kernel> kernel;
  std::vector<Region> inputs;
  std::vector<Region> outputs;
  Region workspace = kNoRegion;
  int64_t arena_bytes = 0;
};

absl::StatusOr<Trial> MakeTrial(const models::Graph& graph,
                                const models::Node& node, Device& device) {
  Trial trial;
  trial.node = &node;
  LOADLINE_ASSIGN_OR_RETURN(trial.kernel, device.Prepare(graph, node));
  const auto place = [&](int64_t bytes) {
    const Region region = {trial.arena_bytes, bytes};
    trial.arena_bytes += planner::AlignUp(bytes);
    return region;
  };
  for (models::ValueId id : node.inputs) {
    trial.inputs.push_back(id == models::kNoValue
                               ? kNoRegion
                               : place(graph.value(id).type.bytes()));
  }
  for (models::ValueId id : node.outputs) {
    trial.outputs.push_back(id == models::kNoValue
                                ? kNoRegion
                                : place(graph.value(id).type.bytes()));
  }
  if (trial.kernel->workspace_bytes() > 0) {
    trial.workspace = place(trial.kernel->workspace_bytes());
  }
  return trial;
}

absl::Status WriteContents(const models::Graph& graph, const Trial& trial,
                           Device& device) {
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    if (!IsPresent(trial.inputs[i])) continue;
    const models::TensorType& type = graph.value(trial.node->inputs[i]).type;
    const models::TensorType part{
        type.dtype,
        {std::min(kContentsBytes, type.bytes()) / DTypeBytes(type.dtype)}};
    const std::vector<std::byte> bytes = MildContents(part);
    for (int64_t at = 0; at < type.bytes(); at += part.bytes()) {
      LOADLINE_RETURN_IF_ERROR(device.Write(
          Space::kDevice, trial.inputs[i].offset + at, bytes.data(),
          std::min(part.bytes(), type.bytes() - at)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RunOnce(const Trial& trial, Device& device,
                                const Region& evict) {
  const StepScalars scalars = {.learning_rate = 1e-3f, .step = 1, .seed = 1};
  LOADLINE_RETURN_IF_ERROR(device.BeginStep());
  if (evict.bytes > 0) {
    LOADLINE_RETURN_IF_ERROR(
        device.Fill(Lane::kCompute, Space::kDevice, evict, /*byte=*/0));
  }
  LOADLINE_RETURN_IF_ERROR(device.Launch({.kernel = trial.kernel.get(),
                                          .inputs = trial.inputs,
                                          .outputs = trial.outputs,
                                          .workspace = trial.workspace,
                                          .scalars = &scalars,
                                          .trace_slot = 0}));
  LOADLINE_RETURN_IF_ERROR(device.Synchronize());
  const TraceSpan& span = device.trace()[0];
  return span.end_ns - span.start_ns;
}

absl::StatusOr<int64_t> Measure(const models::Graph& graph, const Trial& trial,
                                Device& device, const CalibrateOptions& options,
                                const Region& evict) {
  LOADLINE_RETURN_IF_ERROR(WriteContents(graph, trial, device));
  LOADLINE_RETURN_IF_ERROR(RunOnce(trial, device, evict).status());
  std::vector<int64_t> ns;
  for (int32_t run = 0; run < options.runs; ++run) {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t one, RunOnce(trial, device, evict));
    ns.push_back(one);
  }
  return planner::MedianNs(std::move(ns));
}

// One node of each distinct operator, in the graph's order.
std::vector<std::pair<std::string, const models::Node*>> DistinctOperators(
    const models::Graph& graph) {
  std::vector<std::pair<std::string, const models::Node*>> distinct;
  std::set<std::string> keys;
  for (const models::Node& node : graph.nodes) {
    std::string key = models::OperatorKey(graph, node);
    if (models::IsView(node) || !keys.insert(key).second) continue;
    distinct.emplace_back(std::move(key), &node);
  }
  return distinct;
}

// Gives the device an arena that holds the largest trial, and times each one.
absl::StatusOr<std::vector<int64_t>> MeasureAll(
    const models::Graph& graph, const std::vector<Trial>& trials,
    Device& device, const CalibrateOptions& options) {
  if (options.runs < 1 || options.evict_bytes < 0) {
    return absl::InvalidArgumentError("calibration without runs");
  }
  ArenaSpec spec;
  for (const Trial& trial : trials) {
    spec.arena_bytes = std::max(spec.arena_bytes, trial.arena_bytes);
    spec.max_operands = std::max<int32_t>(
        spec.max_operands, static_cast<int32_t>(std::max(
                               trial.inputs.size(), trial.outputs.size())));
  }
  const int64_t operands_bytes = planner::AlignUp(spec.arena_bytes);
  const Region evict = {operands_bytes,
                        std::clamp<int64_t>(options.most_bytes - operands_bytes,
                                            0, options.evict_bytes)};
  spec.arena_bytes = evict.offset + evict.bytes;
  LOADLINE_RETURN_IF_ERROR(device.CreateArena(spec));
  // On the device's clock: submitting a step to a GPU can take longer than the
  // step.
  LOADLINE_RETURN_IF_ERROR(device.EnableTrace(1));

  std::vector<int64_t> times_ns;
  for (const Trial& trial : trials) {
    if (options.stop != nullptr && options.stop->load()) {
      return absl::CancelledError("calibration was stopped");
    }
    const absl::StatusOr<int64_t> ns =
        Measure(graph, trial, device, options, evict);
    if (!ns.ok()) {
      return absl::Status(
          ns.status().code(),
          absl::StrCat("measuring node ", trial.node->name,
                       trial.algorithm.empty() ? "" : " by ", trial.algorithm,
                       ": ", std::string(ns.status().message())));
    }
    times_ns.push_back(*ns);
    if (options.progress) {
      options.progress(static_cast<int64_t>(times_ns.size()),
                       static_cast<int64_t>(trials.size()));
    }
  }
  return times_ns;
}

}  // namespace

std::vector<std::byte> MildContents(const models::TensorType& type) {
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  const bool brain = type.dtype == models::DType::kBF16;
  if (type.dtype != models::DType::kF32 && !brain) return bytes;
  // The upper half of an f32 is a bf16.
  const size_t skipped = brain ? sizeof(uint16_t) : 0;
  const size_t size = sizeof(float) - skipped;
  uint32_t state = 12345;
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    state = state * 1664525u + 1013904223u;
    const float x = 0.5f + static_cast<float>(state >> 8) / (1 << 24);
    std::memcpy(bytes.data() + i,
                reinterpret_cast<const std::byte*>(&x) + skipped, size);
  }
  return bytes;
}

absl::StatusOr<Algorithms> ChooseAlgorithms(
    const models::Graph& graph, const MakeDeviceFunction& make_device,
    const CalibrateOptions& options) {
  Algorithms fastest;
  std::unique_ptr<Device> device;
  for (const auto& [key, node] : DistinctOperators(graph)) {
    if (device == nullptr) {
      LOADLINE_ASSIGN_OR_RETURN(device, make_device());
      if (!device->offers_algorithms()) break;
    }
    LOADLINE_ASSIGN_OR_RETURN(auto kernel, device->Prepare(graph, *node));
    std::vector<Trial> trials;
    for (const std::string& algorithm : kernel->algorithms()) {
      device->SetAlgorithms({{key, algorithm}});
      absl::StatusOr<Trial> trial = MakeTrial(graph, *node, *device);
      if (absl::IsUnimplemented(trial.status())) continue;
      LOADLINE_RETURN_IF_ERROR(trial.status());
      trial->algorithm = algorithm;
      trials.push_back(*std::move(trial));
    }
    if (trials.empty()) continue;
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> times_ns,
                              MeasureAll(graph, trials, *device, options));
    const auto best = std::min_element(times_ns.begin(), times_ns.end());
    fastest[key] = trials[best - times_ns.begin()].algorithm;
    // A device's kernels are destroyed before the device.
    kernel.reset();
    trials.clear();
    device.reset();
  }
  return fastest;
}

absl::StatusOr<std::map<std::string, int64_t>> Calibrate(
    const models::Graph& graph, Device& device,
    const CalibrateOptions& options) {
  std::vector<Trial> trials;
  for (const auto& [key, node] : DistinctOperators(graph)) {
    LOADLINE_ASSIGN_OR_RETURN(Trial trial, MakeTrial(graph, *node, device));
    if (trial.arena_bytes > options.most_bytes) continue;
    trial.key = key;
    trials.push_back(std::move(trial));
  }
  std::map<std::string, int64_t> ops;
  if (trials.empty()) return ops;
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> times_ns,
                            MeasureAll(graph, trials, device, options));
  for (size_t i = 0; i < trials.size(); ++i) ops[trials[i].key] = times_ns[i];
  return ops;
}

}  // namespace loadline::executor
