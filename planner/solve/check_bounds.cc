// Tested in check_bounds_test.cc.
#include "planner/solve/check_bounds.h"

#include "absl/strings/str_cat.h"

namespace loadline::planner {

absl::Status CheckBounds(const Plan& plan, bool no_plan) {
  const Prediction& reached = plan.predicted;
  if (!no_plan && plan.bounds.peak_bytes <= reached.peak_bytes &&
      plan.bounds.step_ns <= reached.step_ns) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "a bug of the planner: it says that ",
      no_plan ? "no plan exists within "
              : absl::StrCat("no plan takes less than ", plan.bounds.peak_bytes,
                             " bytes and ", plan.bounds.step_ns, " ns within "),
      plan.budget_bytes, " bytes, and has one of ", reached.peak_bytes,
      " bytes and ", reached.step_ns, " ns"));
}

}  // namespace loadline::planner
