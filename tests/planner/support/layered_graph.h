// Random layered graphs: layers of random width, edges mostly from one layer to
// the next, some far ahead, all leading to one last node; the shape of the
// random instances of papers on rematerialization (for example Bartan et al.,
// Moccasin, ICML 2023). Few pairs of nodes are comparable, and many values wait
// long: unlike training steps, they are hard to bound and to search.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_GRAPH_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_GRAPH_H_

#include <cstdint>

#include "planner/problem/problem.h"

namespace loadline::planner {

// `nodes` (at least 3) with one value each, in a topological order that is
// mostly by layer. Without addresses and without copies. The same for the same
// arguments on every machine.
Problem LayeredGraph(uint64_t seed, int nodes);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_GRAPH_H_
