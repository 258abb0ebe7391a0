// How hard BoundStepAt tries. No field changes what a bound means: every value
// gives a true bound, at another price. Measured on the instances of
// tests/bench/bound_bench.cc; *work* is counted in simplex iterations.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_TUNING_H_
#define LOADLINE_PLANNER_BOUND_BOUND_TUNING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loadline::planner {

struct BoundTuning {
  // Stages, in the order in which they run. Ranking cuts comes first and needs
  // no solver.
  bool linear_stage = true;  // linear programs of single cuts
  bool exact_stage = true;   // branch and bound of the best of them
  bool span_stage = true;    // spans between cuts, whose costs add up
  bool joint_stage = true;   // programs of many comparable cuts
  bool free_stage = true;    // branch and bound with free nodes

  // Ranking. Nodes ranked; of a larger problem so many, evenly spread. Ranking
  // costs one pass over the graph for each 64 of them.
  int most_cuts = 2048;

  // Linear stage. Cuts tried, the best ranked first.
  size_t linear_cuts = 12;
  // Cuts without any result after which the others are not tried: their rank is
  // lower.
  size_t few_cuts = 4;

  // Exact stage. Cuts tried, those with the best linear bound first.
  size_t exact_cuts = 3;

  // Span stage. Cuts tried: no two nearer to each other in the given order than
  // this part of it, so that each stands for a peak of its own.
  int most_peaks = 32;
  // Work: 1/n of what is left for the whole stage, 1/n of the limit for one
  // span. The stages after it need the rest.
  int64_t spans_share = 3;
  int64_t span_share = 6;

  // Joint stage. Cuts of each round; a small program often proves most.
  std::vector<size_t> joint_cuts = {4, 16, 80};
  // Nonzero coefficients above which no linear program is solved: one
  // iteration then takes milliseconds.
  size_t most_joint_terms = 150'000;

  // Free stage. Cuts tried, the best ranked first.
  size_t free_cuts = 32;
  // Nonzero coefficients above which there is no branch and bound, without and
  // with free nodes: HiGHS then spends time that no iteration counts.
  size_t most_branch_terms = 30'000;
  size_t most_free_terms = 6'000;

  // Work of starting a branch and bound, and of one of its iterations: they
  // include cuts and presolve.
  int64_t branch_start_work = 100;
  int64_t branch_iteration_work = 4;
  // Building a program costs work as well: 1 for so many coefficients.
  int64_t terms_per_work = 200;

  // Where no plan is known: no step takes longer than so many times all
  // compute and one copy each way of every value. Only bounds the columns.
  double horizon_factor = 100;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_TUNING_H_
