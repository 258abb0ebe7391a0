// Solve: an order that fits as it is; else the ladder (ladder.h) down and up,
// and the fastest rung that can be laid out. Nothing but the choice of the rung
// depends on the budget, so a larger one is never slower. Every plan is
// replayed and verified before it leaves. Tested in solve_test.cc.
#include "planner/solve.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "planner/bound.h"
#include "planner/emit.h"
#include "planner/explain.h"
#include "planner/infeasible.h"
#include "planner/ladder.h"
#include "planner/search.h"
#include "planner/simulate.h"
#include "planner/status_macros.h"
#include "planner/verify.h"

namespace loadline::planner {
namespace {

constexpr int kSmallestRounds = 4;
// Neighbours looked at per layout after the first orders.
constexpr int64_t kPackWork = 1'000'000;

// Completes an emitted plan: prediction by replay, bounds, reasons, proof.
absl::Status Complete(const Model& model, const Schedule& schedule,
                      Plan& plan) {
  LOADLINE_ASSIGN_OR_RETURN(plan.predicted, Replay(*model.problem, plan));
  if (!model.problem->addresses) {
    plan.arena_bytes = plan.predicted.peak_bytes;
  }
  plan.problem_sha256 = ProblemSha256(*model.problem);
  plan.bounds.peak_bytes = BoundPeak(model).bytes;
  StepBoundOptions bound;
  bound.budget_bytes = plan.budget_bytes;
  bound.known_step_ns = plan.predicted.step_ns;
  plan.bounds.step_ns = BoundStepAt(model, bound).step_ns;
  plan.decisions = Explain(model, schedule);
  return Verify(*model.problem, plan);
}

// The layout of a schedule in as few bytes as the packer finds.
absl::StatusOr<Plan> EmitTightest(const Model& model,
                                  const Schedule& schedule) {
  EmitOptions options;
  options.pack_work_limit = kPackWork;
  options.budget_bytes = FindLifetimes(model, schedule).peak_bytes;
  options.tightest = true;
  return Emit(model, schedule, options);
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : options_(options),
        model_(
            MakeModel(problem, options.allow_recompute, options.allow_offload)),
        bound_(BoundPeak(model_)),
        start_(absl::Now()) {
    effort_.left = options.work_limit;
    effort_.cancel = options.cancel;
    if (options.time_limit) effort_.deadline = start_ + *options.time_limit;
  }

  absl::StatusOr<Plan> Solve() {
    LOADLINE_RETURN_IF_ERROR(TryOrders());
    if (!AtBound()) Search();
    if (best_) {
      LOADLINE_RETURN_IF_ERROR(Complete(model_, best_schedule_, *best_));
      return std::move(*best_);
    }
    if (effort_.Interrupted()) {
      return absl::DeadlineExceededError(
          absl::StrCat("stopped before any plan within ", options_.budget_bytes,
                       " bytes was found"));
    }
    return InfeasibleError(*model_.problem, Facts());
  }

  // The plan of the fewest bytes that was found.
  absl::StatusOr<Plan> Smallest() {
    LOADLINE_RETURN_IF_ERROR(TryOrders());
    Search();
    if (!smallest_) {
      return absl::DeadlineExceededError("stopped before any plan was found");
    }
    return std::move(*smallest_);
  }

 private:
  bool AtBound() const {
    return best_ && best_step_ns_ <= static_cast<double>(model_.compute_ns);
  }

  void Keep(const Schedule& schedule, double step_ns, Plan plan) {
    best_ = std::move(plan);
    best_->budget_bytes = options_.budget_bytes;
    best_schedule_ = schedule;
    best_step_ns_ = step_ns;
    if (!options_.progress) return;
    Progress progress;
    progress.elapsed_s = absl::ToDoubleSeconds(absl::Now() - start_);
    progress.peak_bytes = FindLifetimes(model_, schedule).peak_bytes;
    progress.step_ns = static_cast<int64_t>(step_ns);
    progress.bound_step_ns = BoundStep(model_);
    options_.progress(progress);
  }

  // A schedule laid out as tightly as possible, whatever the budget: kept if
  // it fits and is the fastest, and as the smallest if it is.
  bool OfferTight(const Schedule& schedule, double step_ns) {
    absl::StatusOr<Plan> plan = EmitTightest(model_, schedule);
    if (!plan.ok()) return false;
    if (!model_.problem->addresses) {
      plan->arena_bytes = FindLifetimes(model_, schedule).peak_bytes;
    }
    if (!smallest_ || plan->arena_bytes < smallest_->arena_bytes) {
      smallest_ = *plan;
      smallest_->budget_bytes = plan->arena_bytes;
    }
    if (plan->arena_bytes > options_.budget_bytes) return false;
    if (!best_ || step_ns < best_step_ns_) {
      Keep(schedule, step_ns, *std::move(plan));
    }
    return true;
  }

  absl::Status TryOrders() {
    orders_ = StartOrders(model_);
    for (const Schedule& order : orders_) {
      if (!FindLifetimes(model_, order).valid) {
        return absl::InvalidArgumentError(
            "the problem's given order reads a value before it is made or "
            "after its update");
      }
      OfferTight(order, static_cast<double>(model_.compute_ns));
      if (AtBound()) break;
    }
    return absl::OkStatus();
  }

  void Search() {
    Ladder ladder(model_, orders_, options_.work_limit, options_.seed);
    const int top = ladder.RungFor(options_.budget_bytes);
    // A rung that costs no time cannot be improved.
    ladder.Descend(effort_, [&](int k) {
      const Rung& rung = ladder.rungs()[k];
      return k == top &&
             rung.step_ns <= static_cast<double>(model_.compute_ns) &&
             OfferTight(*rung.schedule, rung.step_ns);
    });
    if (AtBound()) return;
    // Before the climb too: in case of an interruption, and because polishing
    // may spoil a layout.
    OfferRungs(ladder, top);
    ladder.Squeeze(effort_);
    for (const Schedule& schedule : ladder.stuck()) OfferStuck(schedule);
    ladder.Climb(options_.budget_bytes, effort_);
    OfferRungs(ladder, top);
  }

  void OfferStuck(const Schedule& schedule) {
    const int64_t peak_bytes = FindLifetimes(model_, schedule).peak_bytes;
    const double step_ns = FindTimes(model_, schedule).step_ns;
    // Not lower than what is known and not faster: no use.
    if (smallest_ && peak_bytes >= smallest_->arena_bytes && best_ &&
        step_ns >= best_step_ns_) {
      return;
    }
    OfferTight(schedule, step_ns);
  }

  // The highest rung whose layout fits. Layouts do not depend on the budget,
  // and no rung is faster than the one above it, so the first is the best.
  void OfferRungs(const Ladder& ladder, int top) {
    for (int k = top; k >= 0; --k) {
      const Rung& rung = ladder.rungs()[k];
      if (!rung.schedule) continue;
      if (best_ && best_step_ns_ <= rung.step_ns) return;
      if (OfferTight(*rung.schedule, rung.step_ns)) return;
      if (effort_.Interrupted() && best_) return;
    }
  }

  Infeasibility Facts() const {
    Infeasibility facts;
    facts.budget_bytes = options_.budget_bytes;
    facts.proven_bound_bytes = bound_.bytes;
    facts.tightest_node = NodeId{bound_.node};
    for (int v : bound_.values) facts.tightest_values.push_back(ValueId{v});
    if (smallest_) facts.smallest_met_bytes = smallest_->arena_bytes;
    return facts;
  }

  const SolveOptions& options_;
  const Model model_;
  const PeakBound bound_;
  const absl::Time start_;
  Effort effort_;
  std::vector<Schedule> orders_;
  std::optional<Plan> best_;
  Schedule best_schedule_;
  double best_step_ns_ = std::numeric_limits<double>::infinity();
  std::optional<Plan> smallest_;
};

absl::Status CheckOptions(const SolveOptions& options) {
  if (options.budget_bytes < 0 || options.work_limit < 0) {
    return absl::InvalidArgumentError(
        "the budget and the work limit may not be negative");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Solve(const Problem& problem,
                           const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  return Solver(problem, options).Solve();
}

absl::StatusOr<Plan> SolveSmallest(const Problem& problem,
                                   const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  SolveOptions smallest = options;
  smallest.budget_bytes = 0;
  LOADLINE_ASSIGN_OR_RETURN(Plan plan, Solver(problem, smallest).Smallest());
  // Solving at what was met may find something smaller still.
  absl::StatusOr<Plan> best = absl::UnknownError("none yet");
  for (int round = 0; round < kSmallestRounds; ++round) {
    smallest.budget_bytes = plan.arena_bytes;
    absl::StatusOr<Plan> next = Solver(problem, smallest).Solve();
    if (!next.ok()) return best.ok() ? std::move(best) : std::move(next);
    plan = *next;
    best = std::move(next);
    if (plan.arena_bytes == smallest.budget_bytes) break;
  }
  return best;
}

absl::StatusOr<Plan> KeepEverything(const Problem& problem) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  const Model model = MakeModel(problem, false, false);
  const Schedule order = GivenOrder(model);
  if (!FindLifetimes(model, order).valid) {
    return absl::InvalidArgumentError(
        "the problem's given order reads a value before it is made or after "
        "its update");
  }
  LOADLINE_ASSIGN_OR_RETURN(Plan plan, EmitTightest(model, order));
  LOADLINE_RETURN_IF_ERROR(Complete(model, order, plan));
  plan.budget_bytes = plan.arena_bytes;
  LOADLINE_RETURN_IF_ERROR(Verify(problem, plan));
  return plan;
}

}  // namespace loadline::planner
