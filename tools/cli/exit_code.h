// What the command's exit status says. docs/command.md lists the same table.
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
  kUnsupported = 4,    // operators nobody implements yet
  kTimeLimit = 5,      // time limit without a plan
  kAboveBudget = 6,    // measured above the budget
  kInterrupted = 130,  // Ctrl-C
};

struct ExitCodeMeaning {
  int code;
  std::string meaning;
};
// The table of docs/command.md.
const std::vector<ExitCodeMeaning>& ExitCodeMeanings();

// ResourceExhausted whose exit code is kCannotFit; any other ResourceExhausted
// (a full disk, a limit on a file) is kBadInput.
absl::Status CannotFitError(absl::string_view message);

// The exit code for a status that ended a verb. What the planner found
// infeasible is kCannotFit.
int ExitCodeFor(const absl::Status& status);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_EXIT_CODE_H_
