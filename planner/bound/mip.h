// Lower bounds on linear and mixed-integer programs.
#ifndef LOADLINE_PLANNER_BOUND_MIP_H_
#define LOADLINE_PLANNER_BOUND_MIP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "planner/base/stop.h"

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
  // No x costs less than `cost - error`. LP: computed from the duals by weak
  // duality, so it holds whatever the solver's tolerances, and `error` is 0
  // (Neumaier, Shcherbina 2004: Safe bounds in linear and mixed-integer linear
  // programming). MIP: `cost` is the solver's dual bound, and `error` what its
  // dual tolerance can add to that, infinite where a column has no limit. This
  // trusts the solver's branching, cutting planes and presolve. -kNoLimit where
  // nothing was proven, as for programs with numbers above 1e12.
  double cost = -kNoLimit;
  double error = 0;
  bool infeasible = false;
  bool optimal = false;           // some x has exactly this cost
  std::vector<double> x;          // the best found; empty: none
  std::vector<double> row_duals;  // of a linear program; empty: none
  int64_t iterations = 0;         // simplex iterations, the unit of work limits
};

// When a solver ends: after so many simplex iterations, or at `stop`, which
// makes the bound depend on the machine.
struct MipLimit {
  int64_t iterations = 0;
  Stop stop;
};

// Ignores `integer`. Stops at the limit with the bound that the duals give
// then. `presolve` is for callers that want x: x is then nearer
// to integers, but presolve takes up to thirty times as long as the solution of
// a program whose rows have hundreds of terms.
MipBound SolveLp(const MipProgram& program, const MipLimit& limit,
                 bool presolve = false);

// Solves one linear program again and again with other limits of its columns,
// each time from the last basis.
class LpSolver {
 public:
  // The program is copied, less `integer`.
  explicit LpSolver(const MipProgram& program);
  ~LpSolver();
  LpSolver(const LpSolver&) = delete;
  LpSolver& operator=(const LpSolver&) = delete;

  void SetLimits(int column, double lower, double upper);
  // As the function SolveLp.
  MipBound Solve(const MipLimit& limit);

 private:
  struct Solver;
  MipProgram program_;
  std::unique_ptr<Solver> solver_;  // null: the numbers are too large
};

// Branch and bound. Stops at the limit, and when the solver's bound reaches
// `enough_cost`.
MipBound SolveMip(const MipProgram& program, const MipLimit& limit,
                  double enough_cost);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_MIP_H_
