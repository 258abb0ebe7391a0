// Random edits of a SearchState, for tests that compare incremental state with
// a computation from scratch.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_EDITS_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_EDITS_H_

#include "planner/search/search_state.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {

// Makes one edit of a random kind at a random slot, useful or not, and leaves
// it pending. The schedule may become invalid; some calls change nothing.
void EditAtRandom(SearchState& state, TestRandom& random);

// The given order after `edits` random edits, of which those were kept that
// left it valid.
Schedule RandomSchedule(const SearchModel& model, TestRandom& random,
                        int edits);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_EDITS_H_
