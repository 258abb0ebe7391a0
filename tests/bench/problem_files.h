// The problems that a benchmark is given on its command line.
#ifndef LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_
#define LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_

#include <functional>
#include <string>

#include "planner/problem/problem.h"

namespace loadline {

// Calls `body` with each loadline.problem/1 file of the folder, by name, or
// with the one file; `name` is the file's without its ending. A file that does
// not read is a line on stdout instead.
void ForEachProblem(
    const std::string& path,
    const std::function<void(const std::string& name,
                             const planner::Problem& problem)>& body);

}  // namespace loadline

#endif  // LOADLINE_TESTS_BENCH_PROBLEM_FILES_H_
