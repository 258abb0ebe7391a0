// Searches with lossy codecs: several choices of which the search may use, and
// none of them.
#ifndef LOADLINE_PLANNER_SOLVE_SOLVE_LOSSY_H_
#define LOADLINE_PLANNER_SOLVE_SOLVE_LOSSY_H_

#include <functional>

#include "absl/status/statusor.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"

namespace loadline::planner {

// One search: Solve or SolveSmallest, of the problem as it is.
using SearchOnce =
    std::function<absl::StatusOr<Plan>(const Problem&, const SolveOptions&)>;

// Whether the options permit a lossy codec that the problem has.
bool MayUseLossyCodecs(const Problem& problem, const SolveOptions& options);

// As Solve and SolveSmallest, where MayUseLossyCodecs: the best plan of
// searches without lossy codecs, with those that save the most bytes, and with
// those that save the most at the peak of the smallest plan without. So what is
// found is never slower, and the smallest never larger, than without lossy
// codecs. No choice depends on the budget, so a larger one is never slower.
absl::StatusOr<Plan> SolveLossy(const Problem& problem,
                                const SolveOptions& options,
                                const SearchOnce& solve,
                                const SearchOnce& smallest);
absl::StatusOr<Plan> SolveSmallestLossy(const Problem& problem,
                                        const SolveOptions& options,
                                        const SearchOnce& smallest);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SOLVE_LOSSY_H_
