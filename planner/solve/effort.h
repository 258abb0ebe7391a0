// How much work a search may do: one policy for the command, C and Python.
//
// | effort   | work | bound  | no plan found, none proven impossible | stalls |
// |----------|------|--------|---------------------------------------|--------|
// | quick    | 0.3M |    450 | stop                                  | -      |
// | normal   |  25M | 15,000 | continue with twice the work          | -      |
// | thorough |  25M | 15,000 | continue with twice, then 4 times     | 4      |
// | moderate |   2M |  3,000 | continue with 4, then 16 times        | 8      |
//
// The first search's work is at most 300,000 for each node of the problem. Work
// is counted in candidate edits of a short sequence, about a million a second;
// the bound's in simplex iterations, some 20,000 a second. "Stalls": a plan
// whose compute waits for copies during more than 5 % of the step is searched
// once more with so many times the work, and the better of the two is taken,
// because which values are copied, and when, is what a longer search improves
// most.
//
// Retries run only where a plan may not be made from the smallest one
// (SolveOptions::allow_smallest_start); otherwise that plan takes their place.
#ifndef LOADLINE_PLANNER_SOLVE_EFFORT_H_
#define LOADLINE_PLANNER_SOLVE_EFFORT_H_

#include <cstdint>
#include <optional>

namespace loadline::planner {

// Values are those of the C interface (plugins/c/loadline.h): 0 is the default.
enum class Effort : int32_t {
  kNormal = 0,    // keeps a 12-layer GPT under 15 s
  kQuick = 1,     // one short search: whether a budget can be met at all
  kThorough = 2,  // for a plan that is used for hours
  kModerate = 3,  // the same where a compile waits for it
};

struct EffortPolicy {
  int64_t work_limit = 0;        // of the first search
  int64_t bound_work_limit = 0;  // for the proven bound on the step time
  // Further searches while no plan is found: each continues from the smallest
  // plan found so far, with `retry_factor` times the work of the one before.
  int retries = 0;
  int64_t retry_factor = 2;
  // A plan that stalls for a larger share of its step is searched again with
  // `stall_factor` times the work; 0: never.
  double long_stall_share = 0;
  int64_t stall_factor = 4;
};

// The policy of an effort for a problem of `node_count` nodes. `work_limit`, if
// given, replaces its first work, and the bound's work shrinks in proportion: a
// caller who waits for a short search only does not wait for a long proof.
// `bound_work_limit`, if given, stands.
EffortPolicy PolicyOf(Effort effort, int64_t node_count,
                      std::optional<int64_t> work_limit,
                      std::optional<int64_t> bound_work_limit);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_EFFORT_H_
