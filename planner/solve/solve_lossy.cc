// Tested in tests/planner/solve/solve_lossy_test.cc and, on models of the zoo,
// in tests/end_to_end/stash_test.cc.
#include "planner/solve/solve_lossy.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "planner/base/status_macros.h"
#include "planner/solve/choose_lossy.h"
#include "planner/solve/infeasible.h"
#include "planner/solve/peak_worth.h"

namespace loadline::planner {
namespace {

bool SameCodecs(const Problem& a, const Problem& b) {
  return std::equal(
      a.values.begin(), a.values.end(), b.values.begin(),
      [](const Value& x, const Value& y) {
        return std::equal(
            x.stash.begin(), x.stash.end(), y.stash.begin(), y.stash.end(),
            [](const Codec& p, const Codec& q) { return p.name == q.name; });
      });
}

// The problem with each choice of lossy codecs; `smallest` is its smallest plan
// without any.
std::vector<Problem> Choices(const Problem& problem,
                             const absl::StatusOr<Plan>& smallest) {
  if (!ErrorsExceedLimit(problem)) return {problem};
  std::vector<Problem> choices = {ChooseLossy(problem)};
  if (!smallest.ok()) return choices;
  Problem at_peak = ChooseLossy(problem, WorthAtPeak(problem, *smallest));
  if (!SameCodecs(at_peak, choices[0])) choices.push_back(std::move(at_peak));
  return choices;
}

// Options of one of several searches: an equal part of the time, and only
// progress beyond what the searches before have found.
class SharedOptions {
 public:
  SharedOptions(const SolveOptions& options, int searches)
      : start_(absl::Now()), options_(options) {
    if (options.time_limit)
      options_.time_limit = *options.time_limit / searches;
    if (!options.progress) return;
    options_.progress = [this, report = options.progress](Progress progress) {
      if (progress.step_ns >= best_ns_) return;
      best_ns_ = progress.step_ns;
      progress.elapsed_s = absl::ToDoubleSeconds(absl::Now() - start_);
      report(progress);
    };
  }
  SharedOptions(const SharedOptions&) = delete;
  SharedOptions& operator=(const SharedOptions&) = delete;

  SolveOptions Of(bool lossy) const {
    SolveOptions options = options_;
    options.permissions.lossy = lossy;
    return options;
  }

 private:
  const absl::Time start_;
  SolveOptions options_;
  int64_t best_ns_ = std::numeric_limits<int64_t>::max();
};

// The facts of all searches: bounds of the first, which knows every codec.
absl::Status Infeasible(const Problem& problem,
                        const std::vector<absl::Status>& failures) {
  std::optional<Infeasibility> facts = InfeasibilityOf(failures[0]);
  if (!facts) return failures[0];
  for (const absl::Status& failure : failures) {
    const std::optional<Infeasibility> others = InfeasibilityOf(failure);
    if (!others || others->smallest_met_bytes == 0) continue;
    facts->smallest_met_bytes =
        facts->smallest_met_bytes == 0
            ? others->smallest_met_bytes
            : std::min(facts->smallest_met_bytes, others->smallest_met_bytes);
  }
  return InfeasibleError(problem, *facts);
}

}  // namespace

bool MayUseLossyCodecs(const Problem& problem, const SolveOptions& options) {
  if (!options.permissions.lossy) return false;
  return std::any_of(
      problem.values.begin(), problem.values.end(), [](const Value& value) {
        return std::any_of(value.stash.begin(), value.stash.end(),
                           [](const Codec& codec) { return !codec.lossless; });
      });
}

absl::StatusOr<Plan> SolveLossy(const Problem& problem,
                                const SolveOptions& options,
                                const SearchOnce& solve,
                                const SearchOnce& smallest) {
  const SharedOptions shared(options, 4);
  absl::StatusOr<Plan> best = solve(problem, shared.Of(false));
  // Nothing is faster than a plan without overhead.
  if (best.ok() && best->predicted.step_ns <= best->bounds.step_ns) return best;
  SolveOptions below = shared.Of(false);
  below.budget_bytes = 0;
  below.progress = nullptr;
  std::vector<absl::Status> failures = {best.status()};
  for (const Problem& choice : Choices(problem, smallest(problem, below))) {
    absl::StatusOr<Plan> plan = solve(choice, shared.Of(true));
    failures.push_back(plan.status());
    if (!plan.ok()) continue;
    if (best.ok() && best->predicted.step_ns <= plan->predicted.step_ns) {
      continue;
    }
    best = Reprice(problem, *std::move(plan), options);
    LOADLINE_RETURN_IF_ERROR(best.status());
  }
  if (!best.ok()) return Infeasible(problem, failures);
  return best;
}

absl::StatusOr<Plan> SolveSmallestLossy(const Problem& problem,
                                        const SolveOptions& options,
                                        const SearchOnce& smallest) {
  const SharedOptions shared(options, 3);
  absl::StatusOr<Plan> best = smallest(problem, shared.Of(false));
  LOADLINE_RETURN_IF_ERROR(best.status());
  // Nothing is smaller than a plan at the bound.
  if (best->arena_bytes <= best->bounds.peak_bytes) return best;
  for (const Problem& choice : Choices(problem, best)) {
    LOADLINE_ASSIGN_OR_RETURN(Plan plan, smallest(choice, shared.Of(true)));
    if (plan.arena_bytes >= best->arena_bytes) continue;
    best = Reprice(problem, std::move(plan), options);
    LOADLINE_RETURN_IF_ERROR(best.status());
  }
  return best;
}

}  // namespace loadline::planner
