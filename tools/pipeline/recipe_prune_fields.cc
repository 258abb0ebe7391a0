// The keys of an entry that prunes. Tested by
// tests/tools/pipeline/recipe_file_test.cc.
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "passes/compress/add_masks.h"
#include "planner/base/status_macros.h"
#include "planner/solve/budget.h"
#include "tools/cli/units.h"
#include "tools/pipeline/recipe_spec_fields.h"
#include "tools/pipeline/recipe_times.h"

namespace loadline::tools {
namespace {

using passes::PruneCriterion;
using passes::PruneGranularity;
using passes::PruneSpec;
using passes::PruneTarget;
using passes::SparsityCurve;

// The share of the run after the end of pruning, where the recipe names no end.
constexpr double kDefaultRetrain = 0.25;

template <typename T>
using Words = std::pair<const char*, T>;

constexpr Words<PruneCriterion> kCriteria[] = {
    {"l1", PruneCriterion::kL1},
    {"l2", PruneCriterion::kL2},
    {"taylor", PruneCriterion::kTaylor},
    {"fisher", PruneCriterion::kFisher},
    {"bn_scale", PruneCriterion::kBnScale},
    {"movement", PruneCriterion::kMovement},
    {"group_lasso", PruneCriterion::kGroupLasso},
    {"random", PruneCriterion::kRandom},
    {"l1_norm", PruneCriterion::kL1},
    {"l2_norm", PruneCriterion::kL2},
    {"magnitude", PruneCriterion::kL1},
};
constexpr Words<PruneGranularity> kGranularities[] = {
    {"channel", PruneGranularity::kChannel},
    {"filter", PruneGranularity::kChannel},
    {"head", PruneGranularity::kHead},
    {"block2x4", PruneGranularity::kBlock2x4},
    {"2:4", PruneGranularity::k2Of4},
    {"unstructured", PruneGranularity::kUnstructured},
};
constexpr Words<SparsityCurve> kSchedules[] = {
    {"one_shot", SparsityCurve::kOneShot}, {"linear", SparsityCurve::kLinear},
    {"cubic", SparsityCurve::kCubic},      {"oneshot", SparsityCurve::kOneShot},
    {"polynomial", SparsityCurve::kCubic},
};
constexpr Words<bool> kScopes[] = {{"local", false}, {"global", true}};

// "40%", a number up to 1 (both shares), or an absolute amount.
absl::Status ReadWhatIsLeft(RecipeFields* degree, const std::string& key,
                            const std::string& text, PruneTarget* target) {
  double value = 0;
  if (absl::EndsWith(text, "%") || absl::SimpleAtod(text, &value)) {
    if (value > 1 && target->kind == PruneTarget::Kind::kMacs) {
      target->count = std::llround(value);
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(
        degree->Share({key.c_str()}, 1, false, &target->share));
    return target->share > 0 ? absl::OkStatus()
                             : degree->Error("must be above zero");
  }
  const auto budget = ParseBudget(text);
  if (target->kind == PruneTarget::Kind::kMacs || !budget.ok() ||
      budget->kind != planner::Budget::Kind::kBytes) {
    return degree->Error(absl::StrCat("expected a share such as 40%, or ",
                                      target->kind == PruneTarget::Kind::kMacs
                                          ? "a number of MACs"
                                          : "bytes such as 300MiB",
                                      ", found '", text, "'"));
  }
  target->count = budget->bytes;
  return absl::OkStatus();
}

absl::Status ReadTarget(RecipeFields* degree, PruneTarget* target) {
  std::string sparsity;
  std::string macs;
  std::string peak_bytes;
  LOADLINE_RETURN_IF_ERROR(degree->Text({"macs", "flops"}, &macs));
  LOADLINE_RETURN_IF_ERROR(
      degree->Text({"peak_bytes", "peak_training_bytes"}, &peak_bytes));
  const bool flops = degree->Has("flops");
  LOADLINE_RETURN_IF_ERROR(degree->Text(
      {"sparsity", "sparse_ratio", "target_sparsity", "final_sparsity"},
      &sparsity));
  const int given = !sparsity.empty() + !macs.empty() + !peak_bytes.empty();
  if (given == 0) LOADLINE_RETURN_IF_ERROR(degree->CheckSpelling());
  if (given != 1) {
    return degree->ErrorAt(
        "sparsity", given == 0 ? "missing: give sparsity, macs or peak_bytes"
                               : "give only one of sparsity, macs and "
                                 "peak_bytes");
  }
  if (!macs.empty()) {
    target->kind = PruneTarget::Kind::kMacs;
    return ReadWhatIsLeft(degree, flops ? "flops" : "macs", macs, target);
  }
  if (!peak_bytes.empty()) {
    target->kind = PruneTarget::Kind::kPeakBytes;
    return ReadWhatIsLeft(
        degree,
        degree->Has("peak_bytes") ? "peak_bytes" : "peak_training_bytes",
        peak_bytes, target);
  }
  LOADLINE_RETURN_IF_ERROR(degree->Share(
      {"sparsity", "sparse_ratio", "target_sparsity", "final_sparsity"}, 1,
      /*below=*/true, &target->share));
  return target->share > 0 ? absl::OkStatus()
                           : degree->Error("0 removes nothing");
}

// The target last: then a misspelt key is known from the others.
absl::Status ReadPruneDegree(RecipeFields* degree, PruneSpec* spec) {
  LOADLINE_RETURN_IF_ERROR(degree->Share({"initial_sparsity", "init_sparsity"},
                                         1, true, &spec->initial_sparsity));
  LOADLINE_RETURN_IF_ERROR(
      degree->Word<bool>({"scope"}, kScopes, &spec->global));
  LOADLINE_RETURN_IF_ERROR(degree->Share(
      {"max_sparsity_per_op", "max_sparsity_per_layer", "max_sparse_ratio"}, 1,
      false, &spec->max_sparsity_per_op));
  LOADLINE_RETURN_IF_ERROR(
      degree->Int({"round_to"}, 1, 1 << 20, &spec->round_to));
  LOADLINE_RETURN_IF_ERROR(ReadTarget(degree, &spec->target));
  if (spec->target.kind != PruneTarget::Kind::kSparsity) {
    return absl::OkStatus();
  }
  if (spec->initial_sparsity > spec->target.share) {
    return degree->ErrorAt("initial_sparsity",
                           "is above the sparsity at the end");
  }
  if (spec->max_sparsity_per_op < spec->target.share) {
    return degree->ErrorAt("max_sparsity_per_op",
                           "is below the sparsity of the whole entry");
  }
  return absl::OkStatus();
}

absl::Status ReadEnd(RecipeFields* process, RecipeTimes* times,
                     const RecipeClock& clock, PruneSpec* spec) {
  double retrain = 0;
  LOADLINE_RETURN_IF_ERROR(process->Share({"retrain"}, 1, true, &retrain));
  const bool retrains = process->Has("retrain");
  LOADLINE_ASSIGN_OR_RETURN(
      const bool has_end,
      times->Read({"end_step", "end"}, {"end_epoch"}, 0, &spec->end_step));
  if (!has_end && spec->schedule == SparsityCurve::kOneShot) {
    spec->end_step = spec->start_step;
  } else if (!has_end) {
    if (clock.steps == 0) {
      return process->ErrorAt("end_step",
                              "missing, and the run's length is not known: "
                              "give end_step, or --steps");
    }
    if (!retrains) retrain = kDefaultRetrain;
    spec->end_step = static_cast<int64_t>(
        std::floor((1 - retrain) * static_cast<double>(clock.steps)));
  }
  if (spec->end_step < spec->start_step) {
    return process->ErrorAt(
        "end_step", absl::StrCat(spec->end_step, " is before start_step ",
                                 spec->start_step));
  }
  if (clock.steps == 0) return absl::OkStatus();
  if (spec->end_step >= clock.steps) {
    return process->ErrorAt(
        "end_step", absl::StrCat(spec->end_step, " leaves none of the run's ",
                                 clock.steps, " steps after it"));
  }
  const auto after = static_cast<double>(clock.steps - spec->end_step);
  if (retrains && after < retrain * static_cast<double>(clock.steps) - 1) {
    return process->ErrorAt(
        "retrain", absl::StrCat("end_step ", spec->end_step, " leaves ",
                                clock.steps - spec->end_step, " of ",
                                clock.steps, " steps, a smaller share"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPrune(RecipeSections* sections, const RecipeClock& clock,
                       PruneSpec* spec) {
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<PruneCriterion>(
      {"criterion"}, kCriteria, &spec->criterion));
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<PruneGranularity>(
      {"granularity"}, kGranularities, &spec->granularity));
  LOADLINE_RETURN_IF_ERROR(ReadPruneDegree(&sections->degree, spec));
  if (!passes::IsStructured(spec->granularity) &&
      spec->target.kind != PruneTarget::Kind::kSparsity) {
    return sections->degree.ErrorAt(
        "macs",
        "masks of this granularity free no MACs and no bytes; give a "
        "sparsity");
  }
  if (!passes::IsStructured(spec->granularity) &&
      spec->criterion != PruneCriterion::kL1 &&
      spec->criterion != PruneCriterion::kL2 &&
      !passes::NeedsGradients(spec->criterion)) {
    return sections->method.ErrorAt(
        "criterion",
        "scores whole channels; single weights take l1, l2, "
        "taylor, fisher or movement");
  }
  if (spec->granularity == PruneGranularity::k2Of4 &&
      spec->target.share != 0.5) {
    return sections->degree.ErrorAt("sparsity", "is 0.5 for 2:4");
  }
  RecipeFields* process = &sections->process;
  LOADLINE_ASSIGN_OR_RETURN(RecipeTimes times,
                            RecipeTimes::Create(process, clock));
  LOADLINE_RETURN_IF_ERROR(
      process->Word<SparsityCurve>({"schedule"}, kSchedules, &spec->schedule));
  LOADLINE_RETURN_IF_ERROR(times
                               .Read({"start_step", "start", "begin_step"},
                                     {"start_epoch"}, 0, &spec->start_step)
                               .status());
  LOADLINE_RETURN_IF_ERROR(
      times
          .Read({"update_frequency", "frequency", "pruning_frequency"},
                {"update_frequency_epochs"}, 1, &spec->update_frequency)
          .status());
  if (passes::NeedsGradients(spec->criterion) && spec->start_step == 0 &&
      (spec->schedule == SparsityCurve::kOneShot ||
       spec->initial_sparsity > 0)) {
    return process->ErrorAt(
        "start_step",
        "must be above 0: the criterion needs gradients, so at "
        "least one step before the first masks");
  }
  return ReadEnd(process, &times, clock, spec);
}

}  // namespace loadline::tools
