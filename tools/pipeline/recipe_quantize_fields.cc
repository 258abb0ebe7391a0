// The keys of an entry that quantizes. Tested by
// tests/tools/pipeline/recipe_file_test.cc.
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

}  // namespace

absl::Status ReadQuantize(RecipeSections* sections, const RecipeClock& clock,
                          QuantizeSpec* spec) {
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<Quantizer>(
      {"quantizer"}, kQuantizers, &spec->quantizer));
  LOADLINE_RETURN_IF_ERROR(sections->method.Word<Observer>(
      {"observer"}, kObservers, &spec->observer));
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
  LOADLINE_RETURN_IF_ERROR(degree->Bool({"reduce_range"}, &spec->reduce_range));
  RecipeFields* process = &sections->process;
  LOADLINE_ASSIGN_OR_RETURN(RecipeTimes times,
                            RecipeTimes::Create(process, clock));
  LOADLINE_RETURN_IF_ERROR(
      times.Read({"start_step", "start"}, {"start_epoch"}, 0, &spec->start_step)
          .status());
  // At the end of the run it quantizes after training.
  if (clock.steps > 0 && spec->start_step > clock.steps) {
    return process->ErrorAt(
        "start_step", absl::StrCat(spec->start_step, " is after the run's ",
                                   clock.steps, " steps"));
  }
  LOADLINE_RETURN_IF_ERROR(
      times.ReadOptional({"freeze_observer_step"}, {"freeze_observer_epoch"},
                         spec->start_step, &spec->freeze_observer_step));
  LOADLINE_RETURN_IF_ERROR(
      times.ReadOptional({"freeze_bn_step"}, {"freeze_bn_epoch"},
                         spec->start_step, &spec->freeze_bn_step));
  return process->Int({"calibration_batches"}, 0, 1 << 20,
                      &spec->calibration_batches);
}

}  // namespace loadline::tools
