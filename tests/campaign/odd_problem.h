// Seeded problems that need not look like a training step: any small graph with
// everything that the format allows.
#ifndef LOADLINE_TESTS_CAMPAIGN_ODD_PROBLEM_H_
#define LOADLINE_TESTS_CAMPAIGN_ODD_PROBLEM_H_

#include <cstdint>

#include "planner/problem/problem.h"

namespace loadline::planner {

// A valid problem of at most `most_nodes` nodes, perhaps of none: nodes without
// inputs or outputs, inputs listed twice, values that nobody reads, zero bytes
// and times, sizes from bytes to petabytes, any alignment, in-place pairs that
// share an input, chains of versions, codecs that gain nothing, a full host,
// copies slower than any node.
Problem OddProblem(uint64_t seed, int most_nodes);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_CAMPAIGN_ODD_PROBLEM_H_
