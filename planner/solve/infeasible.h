// The facts of struct Infeasibility as a status with a payload, and back.
#ifndef LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_
#define LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_

#include <string>

#include "absl/status/status.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"

namespace loadline::planner {

// ResourceExhausted with a sentence of numbers and names.
absl::Status InfeasibleError(const Problem& problem,
                             const Infeasibility& facts);

// "node conv1, which needs a (2.00 MiB), b (1.00 MiB), 3 more".
std::string DescribeTightest(const Problem& problem, const PeakFloor& floor);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_
