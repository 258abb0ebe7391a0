// Which lossy codecs a search may use, if not all may be used together.
#ifndef LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_
#define LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_

#include <vector>

#include "planner/problem/problem.h"

namespace loadline::planner {

// The problem with so few lossy codecs left that their errors together are at
// most 1, as Verify demands of those that a plan uses: then every plan of the
// result is a plan of `problem`, except for its hash. At most one of each value
// is left. The rest of the problem, and every id, is the same. They are those
// that save the most bytes; with `worth` for each value (WorthAtPeak) a byte
// counts by its value's worth, and what error is left goes to the other values.
Problem ChooseLossy(const Problem& problem,
                    const std::vector<double>& worth = {});

// Whether a plan that uses every codec would make too large an error.
bool ErrorsExceedLimit(const Problem& problem);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_
