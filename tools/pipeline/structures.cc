// Tested by tests/tools/pipeline/structures_test.cc and
// tests/end_to_end/micro_batches_test.cc.
#include "tools/pipeline/structures.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/micro_batches.h"
#include "passes/cut_batch.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kOnePart[] = "1";
constexpr int64_t kMostParts = 64;
constexpr size_t kMostNodes = 20'000;
constexpr int64_t kSegments[] = {2, 4, 8, 16};

// What `--disable-pass` calls the pass that splits operators.
constexpr char kSplitPass[] = "split_operators";

bool IsOff(const PlanFlags& flags, absl::string_view pass) {
  const std::vector<std::string>& off = flags.disabled_passes;
  return std::find(off.begin(), off.end(), pass) != off.end();
}

bool HasAutoSplit(const PlanFlags& flags) {
  return std::find(flags.splits.begin(), flags.splits.end(), kAuto) !=
         flags.splits.end();
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> MicroBatchesOf(const PlanFlags& flags) {
  int64_t parts = 0;
  const bool is_auto = flags.micro_batches == kAuto;
  if (!is_auto &&
      (!absl::SimpleAtoi(flags.micro_batches, &parts) || parts < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro-batches '", flags.micro_batches,
                     "': expected a whole number above zero, or auto"));
  }
  if (flags.no_split) return std::optional<int64_t>(1);
  return is_auto ? std::optional<int64_t>() : std::optional(parts);
}

absl::StatusOr<std::optional<std::vector<passes::Split>>> SplitsOf(
    const PlanFlags& flags) {
  using Splits = std::vector<passes::Split>;
  Splits splits;
  const bool is_auto = HasAutoSplit(flags);
  if (is_auto && flags.splits.size() > 1) {
    return absl::InvalidArgumentError(
        "--split auto chooses the segments of every chain; give it alone, or "
        "chains only");
  }
  if (!flags.no_split && !flags.splits.empty() && IsOff(flags, kSplitPass)) {
    return absl::InvalidArgumentError(
        "--split: needs the pass split_operators, which --disable-pass "
        "switches off");
  }
  for (const std::string& text : flags.splits) {
    if (is_auto) break;
    LOADLINE_ASSIGN_OR_RETURN(passes::Split split, passes::ParseSplit(text));
    splits.push_back(std::move(split));
  }
  if (flags.no_split) return std::optional(Splits());
  const bool open =
      is_auto || (flags.splits.empty() && flags.micro_batches == kAuto);
  return open ? std::optional<Splits>() : std::optional(std::move(splits));
}

bool IsAuto(const PlanFlags& flags) {
  return !flags.no_split &&
         (flags.micro_batches == kAuto || HasAutoSplit(flags));
}

void NoteIgnoredStructure(const PlanFlags& flags) {
  if (!flags.no_split) return;
  std::vector<std::string> ignored;
  if (flags.micro_batches != kOnePart) {
    ignored.push_back(absl::StrCat("--micro-batches ", flags.micro_batches));
  }
  for (const std::string& split : flags.splits) {
    ignored.push_back(absl::StrCat("--split ", split));
  }
  if (ignored.empty()) return;
  spdlog::info("--no-split: the step stays in one piece; {} is ignored",
               absl::StrJoin(ignored, ", "));
}

std::string AutoFlag(const PlanFlags& flags) {
  return flags.micro_batches == kAuto ? "--micro-batches auto" : "--split auto";
}

absl::Status RefuseAuto(const PlanFlags& flags, absl::string_view why) {
  LOADLINE_RETURN_IF_ERROR(MicroBatchesOf(flags).status());
  LOADLINE_RETURN_IF_ERROR(SplitsOf(flags).status());
  if (!IsAuto(flags)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(AutoFlag(flags), ": ", why, "; give numbers"));
}

StepFlags WithStructure(const StepFlags& flags, const Structure& structure) {
  StepFlags changed = WithMicroBatches(flags, structure.micro_batches);
  changed.plan.splits = structure.splits;
  return changed;
}

StepFlags WithMicroBatches(const StepFlags& flags, int64_t parts) {
  StepFlags changed = flags;
  changed.plan.micro_batches = absl::StrCat(parts);
  changed.plan.micro_batch_statistics &= parts > 1;
  return changed;
}

std::vector<int64_t> MicroBatchesToTry(int64_t most, size_t nodes) {
  std::vector<int64_t> parts = {1};
  const auto last =
      static_cast<int64_t>(kMostNodes / std::max<size_t>(nodes, 1));
  for (int64_t d = 2; d <= std::min({most, kMostParts, last}); ++d) {
    if (most % d == 0 && 2 * d >= 3 * parts.back()) parts.push_back(d);
  }
  return parts;
}

absl::StatusOr<std::vector<int64_t>> PossibleMicroBatches(
    const models::Graph& model, const StepFlags& flags,
    const PlannedStep& plain) {
  std::vector<int64_t> parts = MicroBatchesToTry(passes::MostParts(plain.graph),
                                                 plain.problem.nodes.size());
  if (parts.size() == 1) return parts;
  const absl::Status possible =
      BuildStep(model, WithMicroBatches(flags, parts[1])).status();
  if (absl::IsFailedPrecondition(possible)) {
    spdlog::info("micro-batches are not possible: {}",
                 std::string(possible.message()));
    parts.resize(1);
    return parts;
  }
  LOADLINE_RETURN_IF_ERROR(possible);
  return parts;
}

std::vector<std::vector<std::string>> SplitsToTry(
    const std::vector<passes::SplittableChain>& chains, int64_t parts) {
  std::vector<std::vector<std::string>> tried;
  if (chains.empty()) return tried;
  std::set<std::string> kinds;
  int64_t fewest_rows = chains[0].rows;
  for (const passes::SplittableChain& chain : chains) {
    kinds.insert(chain.kind);
    fewest_rows = std::min(fewest_rows, chain.rows);
  }
  // The chain with the most bytes comes first.
  for (const int64_t segments : kSegments) {
    if (chains[0].rows / parts < segments) break;
    tried.push_back({absl::StrCat(chains[0].kind, "=", segments)});
  }
  if (kinds.size() == 1) return tried;
  for (const int64_t segments : kSegments) {
    if (fewest_rows / parts < segments) break;
    std::vector<std::string> all;
    for (const std::string& kind : kinds) {
      all.push_back(absl::StrCat(kind, "=", segments));
    }
    tried.push_back(std::move(all));
  }
  return tried;
}

absl::StatusOr<std::vector<Structure>> PossibleStructures(
    const models::Graph& model, const StepFlags& flags,
    const PlannedStep& plain) {
  LOADLINE_ASSIGN_OR_RETURN(const std::optional<int64_t> given,
                            MicroBatchesOf(flags.plan));
  LOADLINE_ASSIGN_OR_RETURN(const auto splits, SplitsOf(flags.plan));
  std::vector<int64_t> parts = {given.value_or(1)};
  if (!given.has_value()) {
    LOADLINE_ASSIGN_OR_RETURN(parts, PossibleMicroBatches(model, flags, plain));
  }
  std::vector<passes::SplittableChain> chains;
  if (!splits.has_value() && !IsOff(flags.plan, kSplitPass)) {
    // As split_operators finds them: of one part, before masks are stored.
    StepFlags whole = WithStructure(flags, {});
    whole.plan.disabled_passes.push_back("mask_relu_gradient");
    LOADLINE_ASSIGN_OR_RETURN(const models::Graph step,
                              BuildStep(model, whole));
    chains = passes::FindSplittableChains(step);
  }
  std::vector<Structure> structures;
  for (const int64_t k : parts) {
    structures.push_back({k, splits.has_value() ? flags.plan.splits
                                                : std::vector<std::string>()});
    for (auto& tried : SplitsToTry(chains, k)) {
      structures.push_back({k, std::move(tried)});
    }
  }
  return structures;
}

absl::Status Appended(const absl::Status& status, absl::string_view more) {
  absl::Status appended(status.code(), absl::StrCat(status.message(), more));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    appended.SetPayload(type, payload);
  });
  return appended;
}

namespace {

// What makes activations smaller. The inputs of a part have its examples.
std::vector<std::string> AdviceForActivations(const models::Graph& step) {
  const bool keeps_statistics = std::any_of(
      step.nodes.begin(), step.nodes.end(),
      [](const models::Node& node) { return node.op == "RunningStatsUpdate"; });
  const bool all_f32 = std::none_of(
      step.values.begin(), step.values.end(), [](const models::Value& value) {
        return value.type.dtype == models::DType::kBF16;
      });
  std::vector<std::string> advice;
  const bool has_parts = models::MicroBatchesOf(step) > 1;
  if (passes::MostParts(step) > 1 && (has_parts || !keeps_statistics)) {
    advice.push_back(has_parts ? "--micro-batches auto, or more micro-batches"
                               : "--micro-batches auto (the batch in parts)");
  }
  advice.push_back("a smaller --batch");
  if (all_f32) advice.push_back("--precision bf16");
  return advice;
}

// What makes an update smaller, which reads no activations.
std::vector<std::string> AdviceForUpdates(const OptimizerFlags& optimizer) {
  const bool adam =
      optimizer.optimizer == "adam" || optimizer.optimizer == "adamw";
  std::vector<std::string> advice;
  if (adam && optimizer.state_bits == 32) {
    advice.push_back("--optimizer-bits 8");
  }
  if (optimizer.optimizer != "sgd") {
    advice.push_back("--optimizer sgd (less optimizer state)");
  } else if (optimizer.EffectiveMomentum() != 0) {
    advice.push_back("--momentum 0 (no optimizer state)");
  }
  if (optimizer.lora.empty()) {
    advice.push_back("--freeze or --lora (fewer parameters are trained)");
  }
  return advice;
}

}  // namespace

absl::Status WithAdvice(const absl::Status& status, const PlannedStep& step,
                        const StepFlags& flags) {
  const auto facts = planner::InfeasibilityOf(status);
  if (!facts.has_value()) return status;
  std::vector<std::string> advice;
  if (flags.plan.no_recompute) advice.push_back("without --no-recompute");
  if (flags.plan.no_offload) advice.push_back("without --no-offload");
  const models::Graph& graph = step.graph;
  const std::string tightest =
      facts->tightest_node == planner::NodeId{-1}
          ? ""
          : step.problem.node(facts->tightest_node).name;
  const bool updates = std::any_of(
      graph.nodes.begin(), graph.nodes.end(), [&](const models::Node& node) {
        return node.phase == models::Phase::kUpdate && node.name == tightest;
      });
  for (std::string& text : updates ? AdviceForUpdates(flags.optimizer)
                                   : AdviceForActivations(graph)) {
    advice.push_back(std::move(text));
  }
  return Appended(status, absl::StrCat("; these may take fewer bytes: ",
                                       absl::StrJoin(advice, ", ")));
}

}  // namespace loadline::tools
