// The only mapping from status codes to exit codes; verbs return a status.
// Tested by tests/tools/cli/exit_code_test.cc.
#include "tools/cli/exit_code.h"

#include "absl/strings/cord.h"
#include "planner/solve/solve.h"

namespace loadline::tools {
namespace {

constexpr char kCannotFitMark[] = "loadline.cannot_fit";
constexpr char kAboveBudgetMark[] = "loadline.above_budget";

absl::Status Marked(absl::Status status, const char* mark) {
  status.SetPayload(mark, absl::Cord("1"));
  return status;
}

}  // namespace

const std::vector<ExitCodeMeaning>& ExitCodeMeanings() {
  static const auto& meanings = *new std::vector<ExitCodeMeaning>{
      {kOk, "ok"},
      {kOurBug, "our bug"},
      {kBadInput, "usage or bad input: a file, a value, a full disk, no GPU"},
      {kCannotFit,
       "no plan within the budget; the message has the smallest budget that "
       "was met, the proven bound and the values at the tightest point"},
      {kUnsupported,
       "operators that are not supported; all of them are listed"},
      {kTimeLimit, "the time limit ended before there was a plan"},
      {kAboveBudget,
       "the measured arena is larger than the plan's budget (run, sweep --run, "
       "report --steps)"},
      {kInterrupted, "interrupted"},
  };
  return meanings;
}

absl::Status CannotFitError(absl::string_view message) {
  return Marked(absl::ResourceExhaustedError(message), kCannotFitMark);
}

absl::Status AboveBudgetError(absl::string_view message) {
  return Marked(absl::OutOfRangeError(message), kAboveBudgetMark);
}

int ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kResourceExhausted:
      return planner::InfeasibilityOf(status).has_value() ||
                     status.GetPayload(kCannotFitMark).has_value()
                 ? kCannotFit
                 : kBadInput;
    case absl::StatusCode::kUnimplemented:
      return kUnsupported;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeLimit;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    case absl::StatusCode::kOutOfRange:
      return status.GetPayload(kAboveBudgetMark).has_value() ? kAboveBudget
                                                             : kBadInput;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return kOurBug;
    default:
      return kBadInput;
  }
}

}  // namespace loadline::tools
