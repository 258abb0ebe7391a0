// Linear and mixed-integer programs, solved only as far as a bound needs.
#ifndef LOADLINE_PLANNER_BOUND_MIP_H_
#define LOADLINE_PLANNER_BOUND_MIP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace loadline::planner {

// One coefficient of a row.
struct Term {
  int column = 0;
  double coefficient = 0;
};

inline constexpr double kNoLimit = 1e300;  // as a bound of a row or column

// Minimise cost · x subject to lower <= A x <= upper and bounds on x.
// Coefficients should be near 1: the caller scales.
struct MipProgram {
  struct Column {
    double cost = 0;
    double lower = 0;
    double upper = 0;
    bool integer = false;
  };
  struct Row {
    double lower = 0;
    double upper = 0;
    int first_term = 0;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::vector<Term> terms;  // of all rows, one after the other

  int AddColumn(double cost, double lower, double upper, bool integer);
  // Terms of the same column add up.
  void AddRow(double lower, double upper, absl::Span<const Term> row_terms);
  absl::Span<const Term> TermsOf(int row) const;
};

struct MipBound {
  // No x costs less. LP: computed from the duals alone by weak duality, so it
  // holds whatever the solver's tolerances (Neumaier, Shcherbina 2004: Safe
  // bounds in linear and mixed-integer linear programming); MIP: the solver's
  // dual bound. -kNoLimit where nothing was proven.
  double cost = -kNoLimit;
  bool infeasible = false;
  bool optimal = false;    // some x costs as much
  std::vector<double> x;   // the best found; empty: none
  int64_t iterations = 0;  // simplex iterations, the unit of work limits
};

// Without regard to `integer`. Stops after so many simplex iterations, with
// whatever bound its duals give then. Presolving a program with rows of
// hundreds of terms takes up to thirty times as long as solving it, so that is
// for those who want x and not the bound alone: it ends nearer to integers.
MipBound SolveLp(const MipProgram& program, int64_t iteration_limit,
                 bool presolve = false);

// Branch and bound. Stops when the bound reaches `enough_cost`.
MipBound SolveMip(const MipProgram& program, int64_t iteration_limit,
                  double enough_cost);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_MIP_H_
