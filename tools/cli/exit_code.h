// The command's exit codes. docs/command.md has the same table.
#ifndef LOADLINE_TOOLS_CLI_EXIT_CODE_H_
#define LOADLINE_TOOLS_CLI_EXIT_CODE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace loadline::tools {

enum ExitCode : int {
  kOk = 0,
  kOurBug = 1,
  kBadInput = 2,       // usage, files, values
  kCannotFit = 3,      // no plan within the budget
  kUnsupported = 4,    // operators that are not implemented
  kTimeLimit = 5,      // time limit without a plan
  kAboveBudget = 6,    // measured above the budget
  kInterrupted = 130,  // Ctrl-C
};

struct ExitCodeMeaning {
  int code;
  std::string meaning;
};
// The table in docs/command.md.
const std::vector<ExitCodeMeaning>& ExitCodeMeanings();

// A ResourceExhausted with exit code kCannotFit; any other ResourceExhausted (a
// full disk, a limit on a file) has kBadInput.
absl::Status CannotFitError(absl::string_view message);

// An OutOfRange with exit code kAboveBudget; any other OutOfRange (an index in
// the data) has kBadInput.
absl::Status AboveBudgetError(absl::string_view message);

// The exit code for the status with which a verb ended. The planner's
// "infeasible" is kCannotFit.
int ExitCodeFor(const absl::Status& status);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_EXIT_CODE_H_
