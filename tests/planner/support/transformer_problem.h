// A GPT training step as bytes and nanoseconds: every operator of the forward
// pass, every gradient as its own node, AdamW with two moments per parameter.
// For tests of planning speed and of budgets below the persistent state.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_TRANSFORMER_PROBLEM_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_TRANSFORMER_PROBLEM_H_

#include <cstdint>

#include "planner/problem/problem.h"

namespace loadline::planner {

struct TransformerShape {
  int layers = 12;
  int64_t width = 768;
  int64_t tokens = 4096;  // batch x sequence
  int64_t sequence = 512;
  int64_t vocabulary = 50304;
  double flop_per_s = 2e11;
  double memory_bytes_per_s = 2e10;
  bool copies = true;
};

// f32 throughout; about 1 + 12 forward, 20 backward and 12 update nodes per
// layer and their pieces. Valid, with addresses.
Problem TransformerProblem(const TransformerShape& shape);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_TRANSFORMER_PROBLEM_H_
