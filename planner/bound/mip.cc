// HiGHS on one thread with limits that count iterations: unless it is stopped,
// the same program gives the same bound on every machine. The only file that
// knows HiGHS. Tested in tests/planner/bound/mip_test.cc.
#include "planner/bound/mip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "Highs.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/base/check.h"

namespace loadline::planner {
namespace {

double Limit(double bound) {
  if (bound >= kNoLimit) return std::numeric_limits<double>::infinity();
  if (bound <= -kNoLimit) return -std::numeric_limits<double>::infinity();
  return bound;
}

HighsLp MakeLp(const MipProgram& program, bool integers) {
  HighsLp lp;
  lp.num_col_ = static_cast<HighsInt>(program.columns.size());
  lp.num_row_ = static_cast<HighsInt>(program.rows.size());
  for (const MipProgram::Column& column : program.columns) {
    lp.col_cost_.push_back(column.cost);
    lp.col_lower_.push_back(Limit(column.lower));
    lp.col_upper_.push_back(Limit(column.upper));
    if (integers) {
      lp.integrality_.push_back(column.integer ? HighsVarType::kInteger
                                               : HighsVarType::kContinuous);
    }
  }
  lp.a_matrix_.format_ = MatrixFormat::kRowwise;
  lp.a_matrix_.start_.clear();
  for (const MipProgram::Row& row : program.rows) {
    lp.row_lower_.push_back(Limit(row.lower));
    lp.row_upper_.push_back(Limit(row.upper));
    lp.a_matrix_.start_.push_back(row.first_term);
  }
  lp.a_matrix_.start_.push_back(static_cast<HighsInt>(program.terms.size()));
  for (const Term& term : program.terms) {
    lp.a_matrix_.index_.push_back(term.column);
    lp.a_matrix_.value_.push_back(term.coefficient);
  }
  return lp;
}

void SetOptions(Highs& highs) {
  highs.setOptionValue("output_flag", false);
  highs.setOptionValue("threads", 1);
  highs.setOptionValue("parallel", "off");
}

// HiGHS refuses larger coefficients, and tolerances mean nothing long before.
constexpr double kMostCoefficient = 1e12;

bool IsScaled(const MipProgram& program) {
  const auto small = [](double number) {
    return std::fabs(number) <= kMostCoefficient;
  };
  const auto limit = [&](double number) {
    return small(number) || std::fabs(number) >= kNoLimit;
  };
  return std::all_of(
             program.terms.begin(), program.terms.end(),
             [&](const Term& term) { return small(term.coefficient); }) &&
         std::all_of(program.rows.begin(), program.rows.end(),
                     [&](const MipProgram::Row& row) {
                       return limit(row.lower) && limit(row.upper);
                     }) &&
         std::all_of(program.columns.begin(), program.columns.end(),
                     [&](const MipProgram::Column& column) {
                       return small(column.cost) && limit(column.lower) &&
                              limit(column.upper);
                     });
}

// How far the dual bound of a node may be above the least cost. The duals that
// give it satisfy each column's constraint up to kDualTolerance, and a column
// of reduced cost -t at most adds -t times its range: so the sum of ranges
// times the tolerance (Neumaier, Shcherbina 2004). Infinite if a range is.
double DualError(const MipProgram& program) {
  constexpr double kDualTolerance = 1e-7;  // HiGHS's default
  double ranges = 0;
  for (const MipProgram::Column& column : program.columns) {
    if (column.lower <= -kNoLimit || column.upper >= kNoLimit) {
      return std::numeric_limits<double>::infinity();
    }
    ranges += column.upper - column.lower;
  }
  return kDualTolerance * ranges;
}

// The least value of the Lagrangian over the columns' limits: a lower bound for
// every choice of `duals`.
double WeakDuality(const MipProgram& program,
                   const std::vector<double>& duals) {
  std::vector<long double> reduced;
  for (const MipProgram::Column& column : program.columns) {
    reduced.push_back(column.cost);
  }
  long double bound = 0;
  long double magnitude = 0;
  const auto add = [&](long double price, double limit) {
    if (price == 0) return true;
    if (std::fabs(limit) >= kNoLimit) return false;
    bound += price * limit;
    magnitude += std::fabs(price * limit);
    return true;
  };
  for (size_t row = 0; row < program.rows.size(); ++row) {
    const double dual = duals[row];
    // A dual of the wrong sign for a row with one side is ignored.
    if (!add(dual,
             dual > 0 ? program.rows[row].lower : program.rows[row].upper)) {
      continue;
    }
    for (const Term& term : program.TermsOf(static_cast<int>(row))) {
      reduced[term.column] -= static_cast<long double>(dual) * term.coefficient;
    }
  }
  for (size_t c = 0; c < program.columns.size(); ++c) {
    const MipProgram::Column& column = program.columns[c];
    if (!add(reduced[c], reduced[c] > 0 ? column.lower : column.upper)) {
      return -kNoLimit;
    }
  }
  // More than the rounding errors of these sums.
  return static_cast<double>(bound - 1e-14L * magnitude);
}

}  // namespace

int MipProgram::AddColumn(double cost, double lower, double upper,
                          bool integer) {
  columns.push_back({cost, lower, upper, integer});
  return static_cast<int>(columns.size()) - 1;
}

void MipProgram::AddRow(double lower, double upper,
                        absl::Span<const Term> row_terms) {
  const size_t first = terms.size();
  rows.push_back({lower, upper, static_cast<int>(first)});
  // HiGHS rejects a row that names a column twice.
  std::map<int, size_t> places;
  for (const Term& term : row_terms) {
    const auto [place, added] = places.try_emplace(term.column, terms.size());
    if (added) {
      terms.push_back(term);
    } else {
      terms[place->second].coefficient += term.coefficient;
    }
  }
}

absl::Span<const Term> MipProgram::TermsOf(int row) const {
  const size_t first = rows[row].first_term;
  const size_t last = static_cast<size_t>(row) + 1 < rows.size()
                          ? rows[row + 1].first_term
                          : terms.size();
  return absl::MakeConstSpan(terms).subspan(first, last - first);
}

namespace {

// For where no callback looks: presolve asks its clock alone.
void SetTimeLimit(const Stop& stop, Highs& highs) {
  const double left_s = absl::ToDoubleSeconds(stop.deadline - absl::Now());
  highs.setOptionValue("time_limit", std::max(0.0, left_s));
}

MipBound RunLp(Highs& highs, const MipProgram& program, const MipLimit& limit) {
  SetTimeLimit(limit.stop, highs);
  highs.setOptionValue(
      "simplex_iteration_limit",
      static_cast<int>(std::min<int64_t>(limit.iterations, INT32_MAX)));
  highs.setCallback([&](int, const std::string&, const HighsCallbackOutput*,
                        HighsCallbackInput* in,
                        void*) { in->user_interrupt = limit.stop.Now(); });
  highs.startCallback(HighsCallbackType::kCallbackSimplexInterrupt);
  MipBound result;
  if (highs.run() == HighsStatus::kError) return result;
  result.iterations =
      std::max<int64_t>(0, highs.getInfo().simplex_iteration_count);
  result.infeasible = highs.getModelStatus() == HighsModelStatus::kInfeasible;
  result.optimal = highs.getModelStatus() == HighsModelStatus::kOptimal;
  const HighsSolution& solution = highs.getSolution();
  if (solution.dual_valid) {
    result.row_duals = solution.row_dual;
    result.cost = WeakDuality(program, solution.row_dual);
  }
  if (solution.value_valid) result.x = solution.col_value;
  return result;
}

void PassLp(const MipProgram& program, bool presolve, Highs& highs) {
  SetOptions(highs);
  highs.setOptionValue("solver", "simplex");
  highs.setOptionValue("presolve", presolve ? "choose" : "off");
  LOADLINE_CHECK(highs.passModel(MakeLp(program, false)) !=
                 HighsStatus::kError);
}

}  // namespace

MipBound SolveLp(const MipProgram& program, const MipLimit& limit,
                 bool presolve) {
  if (!IsScaled(program)) return {};
  Highs highs;
  PassLp(program, presolve, highs);
  return RunLp(highs, program, limit);
}

struct LpSolver::Solver {
  Highs highs;
};

LpSolver::LpSolver(const MipProgram& program) : program_(program) {
  if (!IsScaled(program)) return;
  solver_ = std::make_unique<Solver>();
  PassLp(program, false, solver_->highs);
}

LpSolver::~LpSolver() = default;

void LpSolver::SetLimits(int column, double lower, double upper) {
  program_.columns[column].lower = lower;
  program_.columns[column].upper = upper;
  if (solver_ != nullptr) {
    solver_->highs.changeColBounds(column, Limit(lower), Limit(upper));
  }
}

MipBound LpSolver::Solve(const MipLimit& limit) {
  if (solver_ == nullptr) return {};
  return RunLp(solver_->highs, program_, limit);
}

MipBound SolveMip(const MipProgram& program, const MipLimit& limit,
                  double enough_cost) {
  MipBound result;
  if (!IsScaled(program)) return result;
  Highs highs;
  SetOptions(highs);
  // Only the dual bound matters: no heuristics for good x.
  highs.setOptionValue("mip_heuristic_effort", 0.0);
  highs.setOptionValue("mip_heuristic_run_feasibility_jump", false);
  highs.setOptionValue("mip_rel_gap", 1e-6);
  LOADLINE_CHECK(highs.passModel(MakeLp(program, true)) != HighsStatus::kError);
  SetTimeLimit(limit.stop, highs);
  int64_t seen_iterations = 0;
  highs.setCallback([&](int, const std::string&, const HighsCallbackOutput* out,
                        HighsCallbackInput* in, void*) {
    seen_iterations = std::max(seen_iterations, out->mip_total_lp_iterations);
    in->user_interrupt = out->mip_total_lp_iterations >= limit.iterations ||
                         out->mip_dual_bound >= enough_cost || limit.stop.Now();
  });
  highs.startCallback(HighsCallbackType::kCallbackMipInterrupt);
  if (highs.run() == HighsStatus::kError) return result;
  result.iterations = seen_iterations;
  result.infeasible = highs.getModelStatus() == HighsModelStatus::kInfeasible;
  result.optimal = highs.getModelStatus() == HighsModelStatus::kOptimal;
  const double bound = highs.getInfo().mip_dual_bound;
  if (!result.infeasible && std::isfinite(bound)) {
    result.cost = bound;
    result.error = DualError(program) + 1e-12 * std::fabs(bound);
  }
  if (highs.getSolution().value_valid) result.x = highs.getSolution().col_value;
  return result;
}

}  // namespace loadline::planner
