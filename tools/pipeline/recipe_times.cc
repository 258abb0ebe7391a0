// Epochs are rounded to whole steps. Tested by
// tests/tools/pipeline/recipe_file_test.cc.
#include "tools/pipeline/recipe_times.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

constexpr std::pair<const char*, bool> kUnits[] = {
    {"step", false}, {"steps", false}, {"epoch", true}, {"epochs", true}};

}  // namespace

absl::StatusOr<RecipeTimes> RecipeTimes::Create(RecipeFields* process,
                                                const RecipeClock& clock) {
  RecipeTimes times(process, clock);
  LOADLINE_RETURN_IF_ERROR(
      process->Word<bool>({"unit", "units"}, kUnits, &times.in_epochs_));
  return times;
}

absl::StatusOr<bool> RecipeTimes::Read(
    std::initializer_list<const char*> steps,
    std::initializer_list<const char*> epochs, int64_t least, int64_t* to) {
  std::string in_steps;
  std::string in_epochs;
  LOADLINE_RETURN_IF_ERROR(process_.Text(steps, &in_steps));
  LOADLINE_RETURN_IF_ERROR(process_.Text(epochs, &in_epochs));
  if (!in_steps.empty() && !in_epochs.empty()) {
    return process_.Error(absl::StrCat("means the same as ", *steps.begin(),
                                       "; give one of them"));
  }
  if (in_steps.empty() && in_epochs.empty()) return false;
  if (!in_epochs.empty() || in_epochs_) {
    LOADLINE_RETURN_IF_ERROR(
        Epochs(in_epochs.empty() ? in_steps : in_epochs, to));
  } else if (!absl::SimpleAtoi(in_steps, to)) {
    return process_.Error(absl::StrCat(
        "expected a whole number of steps, found '", in_steps, "'"));
  }
  if (*to < least) {
    return process_.Error(absl::StrCat(*to, " steps are less than ", least));
  }
  return true;
}

absl::Status RecipeTimes::ReadOptional(
    std::initializer_list<const char*> steps,
    std::initializer_list<const char*> epochs, int64_t least,
    std::optional<int64_t>* to) {
  int64_t step = 0;
  LOADLINE_ASSIGN_OR_RETURN(const bool there,
                            Read(steps, epochs, least, &step));
  if (there) *to = step;
  return absl::OkStatus();
}

absl::Status RecipeTimes::Epochs(const std::string& text, int64_t* to) {
  double epochs = 0;
  if (!absl::SimpleAtod(text, &epochs) || !(epochs >= 0) || epochs > 1e9) {
    return process_.Error(
        absl::StrCat("expected a number of epochs, found '", text, "'"));
  }
  if (clock_.steps_per_epoch == 0) {
    return process_.Error("epochs need --data, which says how long one is");
  }
  *to = std::llround(epochs * static_cast<double>(clock_.steps_per_epoch));
  return absl::OkStatus();
}

}  // namespace loadline::tools
