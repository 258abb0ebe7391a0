// Problems of many equal layers, and the same problems with few of them.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_PROBLEM_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_PROBLEM_H_

#include "planner/layers/expand_layers.h"
#include "planner/layers/find_layers.h"
#include "planner/layers/shrink.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// A transformer's step with copies, without addresses.
Problem SmallTransformer(int layers);

// A chain that looks unlike a transformer, without a machine:
// y[i] = f(w[i], x[i]), x[i + 1] = g(y[i]); the backward node reads them again;
// an update directly after each backward node.
Problem Chain(int layers);

// A problem and the same with nine of its equal layers left.
struct Coarsened {
  explicit Coarsened(const Problem& whole);
  Coarsened(const Coarsened&) = delete;
  Coarsened& operator=(const Coarsened&) = delete;

  const Problem problem;
  const SearchModel model;
  const Layers layers;
  const CoarseProblem shrunk;
  const SearchModel few_model;
  const LayeredModel all{&model, &layers};
  const LayeredModel few{&few_model, &shrunk.layers};
};

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_LAYERED_PROBLEM_H_
