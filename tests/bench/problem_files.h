// The problems that a benchmark gets on its command line.
#ifndef LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_
#define LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_

#include <functional>
#include <string>

#include "planner/problem/problem.h"

namespace loadline {

// Calls `body` with each loadline.problem/1 file of the folder in order of
// names, or with the one file; `name` is the file's name without its ending. A
// file that cannot be read is reported on stdout instead.
void ForEachProblem(
    const std::string& path,
    const std::function<void(const std::string& name,
                             const planner::Problem& problem)>& body);

}  // namespace loadline

#endif  // LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_
