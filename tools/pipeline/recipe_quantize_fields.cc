// The keys of an entry that quantizes. Tested by
// tests/tools/pipeline/recipe_file_test.cc.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/recipe_spec_fields.h"
#include "tools/pipeline/recipe_times.h"

namespace loadline::tools {
namespace {

using passes::Observer;
using passes::PerTensor;
using passes::Quantizer;
using passes::QuantizeSpec;

template <typename T>
using Words = std::pair<const char*, T>;

constexpr Words<Quantizer> kQuantizers[] = {
    {"uniform", Quantizer::kUniform},
    {"kmeans", Quantizer::kKMeans},
    {"lsq", Quantizer::kLsq},
};
constexpr Words<Observer> kObservers[] = {
    {"minmax", Observer::kMinMax},
    {"ema_minmax", Observer::kEmaMinMax},
    {"percentile", Observer::kPercentile},
    {"mse", Observer::kMse},
};

// One value for all three tensors, or a mapping.
template <typename T, typename Read>
absl::Status ReadPerTensor(RecipeFields* degree, const char* name, Read read,
                           PerTensor<T>* to) {
  LOADLINE_ASSIGN_OR_RETURN(const YAML::Node node, degree->Take({name}));
  if (node.IsNull()) return absl::OkStatus();
  if (!node.IsMap()) {
    T value{};
    LOADLINE_RETURN_IF_ERROR(read(degree, name, &value));
    *to = {value, value, value};
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(
      RecipeFields fields, RecipeFields::Create(degree->file(), degree->entry(),
                                                degree->KeyPath(name), node));
  LOADLINE_RETURN_IF_ERROR(read(&fields, "weight", &to->weight));
  LOADLINE_RETURN_IF_ERROR(read(&fields, "input", &to->input));
  LOADLINE_RETURN_IF_ERROR(read(&fields, "output", &to->output));
  return fields.Finish();
}

absl::Status ReadTargets(RecipeFields* object, PerTensor<bool>* targets) {
  std::vector<std::string> words;
  LOADLINE_RETURN_IF_ERROR(object->Texts({"targets"}, &words));
  if (words.empty()) return absl::OkStatus();
  *targets = {false, false, false};
  for (const std::string& word : words) {
    if (word == "weight") {
      targets->weight = true;
    } else if (word == "input") {
      targets->input = true;
    } else if (word == "output") {
      targets->output = true;
    } else {
      return object->Error(
          absl::StrCat("'", word, "' is none of weight, input, output"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBits(const RecipeFields& degree, const QuantizeSpec& spec) {
  const bool one_bit =
      (spec.targets.weight && spec.bits.weight < 2 &&
       spec.quantizer != Quantizer::kKMeans) ||
      (spec.targets.input && spec.symmetric.input && spec.bits.input < 2) ||
      (spec.targets.output && spec.symmetric.output && spec.bits.output < 2);
  if (!one_bit) return absl::OkStatus();
  return degree.ErrorAt("bits",
                        "a symmetric grid, and that of a weight, has at least "
                        "2 bits; kmeans takes 1 for a weight");
}

// A step after the run's last would be ignored.
absl::Status CheckStep(const RecipeFields& process, const RecipeClock& clock,
                       const char* key, const std::optional<int64_t>& step) {
  if (clock.steps == 0 || !step.has_value() || *step <= clock.steps) {
    return absl::OkStatus();
  }
  return process.ErrorAt(
      key, absl::StrCat(*step, " is after the run's ", clock.steps, " steps"));
}

// Ranges of inputs and outputs come from calibration, or from steps before they
// are frozen.
absl::Status CheckRanges(const RecipeFields& process, const RecipeClock& clock,
                         const QuantizeSpec& spec) {
  if (spec.calibration_batches > 0 ||
      (!spec.targets.input && !spec.targets.output)) {
    return absl::OkStatus();
  }
  const char* why = nullptr;
  if (spec.quantizer == Quantizer::kLsq) {
    why = "trained scales begin with";
  } else if (spec.freeze_observer_step == spec.start_step ||
             (clock.steps > 0 && spec.start_step == clock.steps)) {
    why = "no step is left to observe";
  }
  if (why == nullptr) return absl::OkStatus();
  return process.ErrorAt(
      "calibration_batches",
      absl::StrCat("at least 1 is needed for the ranges that ", why));
}

}  // namespace

absl::Status ReadQuantize(RecipeSections* sections, const RecipeClock& clock,
                          QuantizeSpec* spec) {
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<Quantizer>(
      {"quantizer"}, kQuantizers, &spec->quantizer));
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<Observer>(
      {"observer"}, kObservers, &spec->observer));
  if (spec->observer != Observer::kMinMax &&
      spec->observer != Observer::kEmaMinMax) {
    return sections->method.ErrorAt(
        "observer", "is not supported; minmax and ema_minmax are");
  }
  LOADLINE_RETURN_IF_ERROR(ReadTargets(&sections->object, &spec->targets));
  const auto read_bool = [](RecipeFields* from, const char* name, bool* to) {
    return from->Bool({name}, to);
  };
  RecipeFields* degree = &sections->degree;
  LOADLINE_RETURN_IF_ERROR(ReadPerTensor<int64_t>(
      degree, "bits",
      [](RecipeFields* from, const char* name, int64_t* to) {
        return from->Int({name}, 1, 8, to);
      },
      &spec->bits));
  LOADLINE_RETURN_IF_ERROR(
      ReadPerTensor<bool>(degree, "symmetric", read_bool, &spec->symmetric));
  LOADLINE_RETURN_IF_ERROR(ReadPerTensor<bool>(degree, "per_channel", read_bool,
                                               &spec->per_channel));
  const PerTensor<bool>& channels = spec->per_channel;
  if ((channels.input || channels.output) &&
      !(channels.weight && channels.input && channels.output)) {
    return degree->ErrorAt("per_channel",
                           "inputs and outputs have one scale for all "
                           "channels; give it for weight alone");
  }
  LOADLINE_RETURN_IF_ERROR(degree->Bool({"reduce_range"}, &spec->reduce_range));
  LOADLINE_RETURN_IF_ERROR(CheckBits(*degree, *spec));
  RecipeFields* process = &sections->process;
  LOADLINE_ASSIGN_OR_RETURN(RecipeTimes times,
                            RecipeTimes::Create(process, clock));
  LOADLINE_RETURN_IF_ERROR(
      times.Read({"start_step", "start"}, {"start_epoch"}, 0, &spec->start_step)
          .status());
  // At the end of the run it quantizes after training.
  LOADLINE_RETURN_IF_ERROR(
      CheckStep(*process, clock, "start_step", spec->start_step));
  LOADLINE_RETURN_IF_ERROR(
      times.ReadOptional({"freeze_observer_step"}, {"freeze_observer_epoch"},
                         spec->start_step, &spec->freeze_observer_step));
  LOADLINE_RETURN_IF_ERROR(
      times.ReadOptional({"freeze_bn_step"}, {"freeze_bn_epoch"},
                         spec->start_step, &spec->freeze_bn_step));
  LOADLINE_RETURN_IF_ERROR(CheckStep(*process, clock, "freeze_observer_step",
                                     spec->freeze_observer_step));
  LOADLINE_RETURN_IF_ERROR(
      CheckStep(*process, clock, "freeze_bn_step", spec->freeze_bn_step));
  LOADLINE_RETURN_IF_ERROR(process->Int({"calibration_batches"}, 0, 1 << 20,
                                        &spec->calibration_batches));
  return CheckRanges(*process, clock, *spec);
}

}  // namespace loadline::tools
