// Runs of the digits model under a recipe.
#ifndef LOADLINE_TESTS_END_TO_END_RECIPE_RUNS_H_
#define LOADLINE_TESTS_END_TO_END_RECIPE_RUNS_H_

#include <string>
#include <vector>

#include "tests/end_to_end/run_command.h"

namespace loadline {

// Writes FOLDER/recipe.yaml and returns its path.
std::string WriteRecipe(const std::string& folder, const std::string& text);

// `loadline run mlp.onnx --recipe RECIPE --json` and more flags.
CommandResult RunMlpUnder(const std::string& recipe,
                          const std::vector<std::string>& more,
                          const CommandOptions& options = {});

// Interrupts such a run when `stop` is on stderr, which ends it with 130, and
// resumes it from `checkpoint`, then with `at_end` too.
CommandResult InterruptAndResume(const std::string& recipe,
                                 const std::vector<std::string>& flags,
                                 const std::string& stop,
                                 const std::string& checkpoint,
                                 const std::vector<std::string>& at_end = {});

}  // namespace loadline

#endif  // LOADLINE_TESTS_END_TO_END_RECIPE_RUNS_H_
