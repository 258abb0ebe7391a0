// Progress rows of a long search.
#ifndef LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_
#define LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_

#include <functional>
#include <string>

#include "planner/solve/solve.h"

namespace loadline::tools {

// "   2.1 s    peak 22.8 MiB    step 173 ms    bound 170 ms    gap 1.8 %".
std::string ProgressRow(const planner::Progress& progress);

// For SolveOptions::progress: calls `show` with a row after a search has taken
// a second, and then at most once a second. Short searches show nothing.
std::function<void(const planner::Progress&)> ProgressRows(
    std::function<void(const std::string&)> show);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_
