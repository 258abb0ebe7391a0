// The profile depends on the model, its weights and the data alone, never on
// the clock, so equal flags give equal problems and plans. Tested by
// tests/tools/pipeline/gradient_errors_test.cc.
#include "tools/pipeline/gradient_errors.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/cpu/device.h"
#include "executor/measure/gradient_error.h"
#include "executor/train/data.h"
#include "models/micro_batches.h"
#include "models/ops/operator.h"
#include "passes/lossless_codecs.h"
#include "passes/make_problem.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/load_data.h"

namespace loadline::tools {
namespace {

// A profile holds every value of a step at once.
constexpr int64_t kMostProfileBytes = int64_t{4} << 30;
// Floating-point operations and bytes, a byte for four: about two minutes of
// one core.
constexpr double kMostProfileWork = 3e12;

// The profile is of the start of training. Later the gradient becomes smaller,
// and so its relative error larger: with the zoo's GPT 1.7 times after 50
// steps, 2.4 times after 300. A plan's own prediction takes this part of what
// the user allows.
constexpr double kShareAtTheStart = 0.5;

double ProfileWork(const models::Graph& graph, size_t candidates) {
  double work = 0;
  for (const models::Node& node : graph.nodes) {
    if (node.phase == models::Phase::kUpdate) continue;
    const models::OperatorCost cost = models::CostOf(graph, node);
    work += cost.flops + 4 * static_cast<double>(cost.bytes);
  }
  // On average half of the backward pass, which is two thirds of a step, and
  // then half of a step.
  return work * (1 + static_cast<double>(candidates) * 5 / 6);
}

// Uniform floats with mean 0 and variance 1; integers within their range.
std::vector<std::byte> MadeUp(const models::TensorType& type,
                              const std::optional<passes::IntegerRange>& range,
                              uint64_t* state) {
  const auto draw = [state] {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(*state >> 32);
  };
  std::vector<std::byte> contents(static_cast<size_t>(type.bytes()));
  const auto fill = [&](auto of) {
    using T = decltype(of);
    T* to = reinterpret_cast<T*>(contents.data());
    for (int64_t i = 0; i < type.elements(); ++i) {
      if constexpr (std::is_same_v<T, float>) {
        to[i] = (static_cast<float>(draw()) * 0x1p-31f - 1.0f) * 1.7320508f;
      } else if (range.has_value()) {
        const int64_t least = std::max<int64_t>(0, range->least);
        const int64_t count = std::max<int64_t>(1, range->most - least + 1);
        to[i] = static_cast<T>(least + draw() % count);
      }
    }
  };
  if (type.dtype == models::DType::kF32) fill(float{});
  if (type.dtype == models::DType::kI64) fill(int64_t{});
  if (type.dtype == models::DType::kI32) fill(int32_t{});
  return contents;
}

absl::StatusOr<std::vector<double>> Profile(
    const StepFlags& flags, const models::Graph& graph,
    const std::vector<models::ValueId>& candidates) {
  executor::CpuDevice host;
  if (!flags.loss.data.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                              LoadDataFor(flags.loss, graph));
    LOADLINE_ASSIGN_OR_RETURN(
        const auto batcher,
        executor::Batcher::Create(data, executor::BatchOf(graph).value_or(1),
                                  /*seed=*/0, /*shuffle=*/false,
                                  models::MicroBatchesOf(graph)));
    LOADLINE_ASSIGN_OR_RETURN(const auto rows, batcher->Batch(0));
    return executor::ProfileGradientErrors(graph, rows, candidates, host);
  }
  const auto ranges = passes::IntegerRanges(graph);
  std::vector<std::vector<std::byte>> contents;
  std::vector<const std::byte*> inputs;
  uint64_t state = 1;
  for (models::ValueId id : graph.inputs) {
    contents.push_back(
        MadeUp(graph.value(id).type, ranges[models::Index(id)], &state));
    inputs.push_back(contents.back().data());
  }
  return executor::ProfileGradientErrors(graph, inputs, candidates, host);
}

}  // namespace

absl::StatusOr<GradientErrors> GradientErrorsFor(const StepFlags& flags,
                                                 const models::Graph& graph) {
  GradientErrors errors;
  errors.most = kShareAtTheStart * flags.plan.max_gradient_error;
  if (!(errors.most > 0)) return errors;
  const std::vector<models::ValueId> candidates = executor::LossyCandidates(
      graph, passes::MakeProblemOptions().smallest_stash_bytes);
  std::string why;
  if (executor::ProfileBytes(graph) > kMostProfileBytes) {
    why = "the step's values together take more than 4 GiB";
  } else if (ProfileWork(graph, candidates.size()) > kMostProfileWork) {
    why = "a profile would take minutes";
  } else {
    auto profile = Profile(flags, graph, candidates);
    if (profile.ok()) {
      spdlog::info(
          "gradient errors: profiled for {} values on the CPU, with {}",
          candidates.size(),
          flags.loss.data.empty() ? "made-up inputs" : "one batch");
      errors.of_values = *std::move(profile);
      return errors;
    }
    why = std::string(profile.status().message());
  }
  spdlog::warn("gradient errors are estimated, not profiled: {}", why);
  errors.of_values.assign(graph.values.size(), -1.0);
  for (models::ValueId id : candidates) {
    errors.of_values[models::Index(id)] = executor::kAnalyticGradientError;
  }
  return errors;
}

}  // namespace loadline::tools
