// Which values a plan stores compressed, and what that saves and costs.
#ifndef LOADLINE_PLANNER_PROBLEM_USED_CODECS_H_
#define LOADLINE_PLANNER_PROBLEM_USED_CODECS_H_

#include <cstdint>
#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

struct UsedCodec {
  ValueId value = kNoValue;
  const Codec* codec = nullptr;  // of the problem
};

// Every pair of value and codec whose encode the plan runs, once, in the order
// of the plan's steps. The plan must refer to the problem's values; a codec
// that the problem lacks is left out.
std::vector<UsedCodec> UsedCodecs(const Problem& problem, const Plan& plan);

struct CodecFigures {
  int64_t values = 0;
  int64_t bytes = 0;        // of the values as they are
  int64_t saved_bytes = 0;  // by the smallest form of each
  bool lossy = false;
  double error = 0;  // sum over the codecs used: at most 1
};
CodecFigures FiguresOf(const Problem& problem, const Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_USED_CODECS_H_
