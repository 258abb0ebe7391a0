// Tested in solve_test.cc and solve_limits_test.cc.
#include "planner/solve/plan_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "planner/base/status_macros.h"
#include "planner/bound/bound.h"
#include "planner/certificate/check_certificate.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "planner/solve/budget_bisection.h"
#include "planner/solve/complete_plan.h"
#include "planner/solve/drop_redundant_transfers.h"
#include "planner/solve/infeasible.h"
#include "planner/solve/smallest_start.h"

namespace loadline::planner {
namespace {

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options,
         const EffortPolicy& policy)
      : options_(options),
        policy_(policy),
        problem_(problem),
        model_(MakeSearchModel(problem, ModelOptions(options))),
        start_(absl::Now()),
        workers_(options.threads) {
    outside_.stop.cancel = options.cancel;
    outside_.workers = &workers_;
  }

  absl::StatusOr<Plan> Solve() {
    LOADLINE_RETURN_IF_ERROR(TryOrders());
    SetDeadline();
    if (kept_->arena_bytes <= options_.budget_bytes) {
      Improved(*kept_);
      return Finish(*kept_);
    }
    if (!HasNodes()) {
      return InfeasibleError(problem_, Facts(kept_->arena_bytes));
    }
    LOADLINE_RETURN_IF_ERROR(TryPlain());
    // No search finds what a bound rules out.
    if (BoundPeak(model_).bytes > options_.budget_bytes) {
      return InfeasibleError(problem_, Facts(SmallestMetBytes()));
    }
    BudgetBisection bisection = MakeBisection(outside_);
    const auto improved = [this](const LaidOutSchedule& laid_out) {
      Improved(laid_out);
    };
    searched_ = bisection.searched();
    if (options_.time_limit) {
      SolveUntilDeadline(bisection, improved);
    } else {
      const LaidOutSchedule* laid_out =
          bisection.BisectTo(options_.budget_bytes, improved);
      const int retries = options_.allow_smallest_start ? 0 : policy_.retries;
      for (int retry = 0; laid_out == nullptr && retry < retries && MayExist();
           ++retry) {
        bisection.BisectDown();
        bisection.SearchHarder(policy_.retry_factor);
        laid_out = bisection.BisectTo(options_.budget_bytes, improved);
      }
      if (laid_out != nullptr) Improved(*laid_out);
    }
    int64_t smallest_bytes = kept_->arena_bytes;
    if (!best_ && !outside_.Interrupted()) {
      smallest_bytes = options_.allow_smallest_start
                           ? SolveFromSmallest(bisection, improved)
                           : bisection.smallest().arena_bytes;
    }
    if (best_) {
      WorkBudget work = outside_;
      work.left = policy_.work_limit;
      if (options_.time_limit && work.Interrupted()) return Finish(*best_);
      if (const auto fewer = DropRedundantTransfers(
              model_, *best_, options_.budget_bytes, best_->step_ns, work)) {
        best_ = *fewer;
      }
      return Finish(*best_);
    }
    if (outside_.Interrupted()) {
      return absl::DeadlineExceededError(
          absl::StrCat("stopped before any plan within ", options_.budget_bytes,
                       " bytes was found"));
    }
    return InfeasibleError(problem_, Facts(smallest_bytes));
  }

  // The plan of the fewest bytes that was found.
  absl::StatusOr<Plan> Smallest() {
    LOADLINE_RETURN_IF_ERROR(TryOrders());
    SetDeadline();
    if (!HasNodes()) return Finish(*kept_);
    if (options_.time_limit) return SmallestUntilDeadline();
    BudgetBisection bisection = MakeBisection(outside_);
    searched_ = bisection.searched();
    const LaidOutSchedule smallest =
        FindSmallest(bisection, {policy_.retries, policy_.retry_factor});
    return Finish(Faster(smallest));
  }

 private:
  // Where a short search finds nothing, the plan of the fewest bytes may fit.
  void SolveUntilDeadline(
      BudgetBisection& bisection,
      const std::function<void(const LaidOutSchedule&)>& improved) {
    const int64_t budget_bytes = options_.budget_bytes;
    bisection.FindWithin(model_.tuning.bisection.timed_find_share, budget_bytes,
                         improved);
    std::optional<LaidOutSchedule> start;
    if (!best_ && !outside_.Interrupted()) start = Start();
    const bool fits = start && start->arena_bytes <= budget_bytes;
    if (fits) Improved(*start);
    bisection.SearchUntilDeadline(budget_bytes, improved,
                                  fits ? &*start : nullptr);
    NoteProof(bisection, budget_bytes);
  }

  // Memory is counted at the places of items, copies lie between them: a search
  // has nothing to work on without nodes.
  bool HasNodes() const { return model_.node_count > 0; }

  std::optional<LaidOutSchedule> Start() const {
    return SmallestStart(model_, orders_, BoundPeak(model_).bytes,
                         options_.seed, outside_);
  }

  // Descents after the first one, each with so many times the work of the one
  // before, or with the same work if that one was interrupted.
  struct Retries {
    int left = 0;
    int64_t factor = 1;
    bool interrupted = false;
  };

  // The plan of the fewest bytes that a search finds, from the start that needs
  // none.
  LaidOutSchedule FindSmallest(BudgetBisection& bisection,
                               Retries retries) const {
    StartDescent(bisection, retries);
    while (!bisection.Interrupted() && Descend(bisection, retries)) {
    }
    return bisection.smallest();
  }

  void StartDescent(BudgetBisection& bisection, Retries& retries) const {
    const std::optional<LaidOutSchedule> start = Start();
    if (start && start->arena_bytes < kept_->arena_bytes) {
      bisection.ContinueBelow(*start);
    }
    bisection.BisectDown();
    retries.interrupted = bisection.Interrupted();
  }

  // Once more; false: there is nothing to try.
  bool Descend(BudgetBisection& bisection, Retries& retries) const {
    if (retries.left == 0 ||
        bisection.smallest().arena_bytes <= BoundPeak(model_).bytes) {
      return false;
    }
    bisection.SearchHarder(retries.interrupted ? 1 : retries.factor);
    bisection.BisectDown();
    if (!retries.interrupted) --retries.left;
    retries.interrupted = bisection.Interrupted();
    return true;
  }

  LaidOutSchedule Faster(const LaidOutSchedule& plan) const {
    return MakeBisection(outside_).Faster(plan);
  }

  // Of a budget that is ruled out, nobody waits for the last byte.
  int64_t SmallestMetBytes() const {
    BudgetBisection bisection = MakeBisection(outside_);
    return FindSmallest(bisection, {}).arena_bytes;
  }

  // Where the search found nothing within the budget: the smallest plan may be
  // within it, and then plans between that and the smallest of the search.
  // Larger budgets never get slower plans, but for a smallest plan that is
  // faster than what the search found in more bytes. Returns the bytes that
  // SolveSmallest's plan needs; with so many, there is a plan.
  int64_t SolveFromSmallest(
      BudgetBisection& bisection,
      const std::function<void(const LaidOutSchedule&)>& improved) {
    bisection.BisectDown();
    BudgetBisection below = MakeBisection(outside_);
    const LaidOutSchedule smallest =
        FindSmallest(below, {policy_.retries, policy_.retry_factor});
    if (smallest.arena_bytes <= options_.budget_bytes) {
      if (smallest.step_ns >= bisection.smallest().step_ns) {
        bisection.ContinueAbove(smallest);
        Improved(*bisection.BisectTo(options_.budget_bytes, improved));
      } else {
        Improved(smallest);
      }
      return smallest.arena_bytes;
    }
    const LaidOutSchedule faster = Faster(smallest);
    if (faster.arena_bytes <= options_.budget_bytes) Improved(faster);
    return faster.arena_bytes;
  }

  // Fewer bytes for half of the time left, then less time in these bytes; where
  // that is proven to be the least before the time is over, fewer bytes again.
  // Descents start with little work: with all of it, the time may end at the
  // first budget, which has no plan. They end with the work that they would
  // have without a time limit.
  absl::StatusOr<Plan> SmallestUntilDeadline() {
    const SearchTuning::Bisection& tuning = model_.tuning.bisection;
    const int64_t first_work = std::min<int64_t>(
        policy_.work_limit, static_cast<int64_t>(tuning.first_timed_work));
    BudgetBisection bisection = MakeBisection(outside_, first_work);
    searched_ = bisection.searched();
    Retries retries = TimedRetries(first_work);
    bisection.SetDeadline(HalfOfTheTimeLeft());
    StartDescent(bisection, retries);
    bool more = true;
    while (more) {
      while (more && !bisection.Interrupted()) {
        more = Descend(bisection, retries);
      }
      const LaidOutSchedule& smallest = bisection.smallest();
      if (!best_ || smallest.arena_bytes < best_->arena_bytes) {
        best_.reset();
        Improved(smallest);
        BudgetBisection faster = MakeBisection(outside_);
        faster.SearchUntilDeadline(
            smallest.arena_bytes,
            [this](const LaidOutSchedule& plan) { Improved(plan); }, &smallest);
        NoteProof(faster, smallest.arena_bytes);
      }
      more = more && !outside_.Interrupted();
      bisection.SetDeadline(HalfOfTheTimeLeft());
    }
    return Finish(*best_);
  }

  // For the bound of the final plan: the time that is left may not do.
  void NoteProof(const BudgetBisection& bisection, int64_t budget_bytes) {
    const StepBound* proof = bisection.ProofAt(budget_bytes);
    if (proof != nullptr) proof_ = {budget_bytes, *proof};
  }

  absl::Time HalfOfTheTimeLeft() const {
    const absl::Time now = absl::Now();
    return now + (outside_.stop.deadline - now) / 2;
  }

  Retries TimedRetries(int64_t first_work) const {
    const double growth = model_.tuning.bisection.timed_growth;
    const double most = static_cast<double>(policy_.work_limit) *
                        std::pow(policy_.retry_factor, policy_.retries);
    Retries retries = {.factor = static_cast<int64_t>(growth)};
    for (double work = static_cast<double>(first_work); work < most;
         work *= growth) {
      ++retries.left;
    }
    return retries;
  }

  absl::StatusOr<Plan> Finish(const LaidOutSchedule& laid_out) const {
    Plan plan = laid_out.plan;
    plan.budget_bytes = std::max(options_.budget_bytes, laid_out.arena_bytes);
    plan.searched = searched_;
    LOADLINE_RETURN_IF_ERROR(
        CompletePlan(model_, laid_out.schedule, LimitOfProof(plan), plan));
    return plan;
  }

  // Of a time limit some is left for the bound and for checks, which take about
  // as long as the layouts and models before the search.
  void SetDeadline() {
    if (!options_.time_limit) return;
    const SearchTuning::Bisection& tuning = model_.tuning.bisection;
    const absl::Duration limit = *options_.time_limit;
    const absl::Duration finish =
        std::max(tuning.finish_share * limit,
                 tuning.finish_setups * (absl::Now() - start_));
    outside_.stop.deadline = start_ + limit - std::min(finish, limit / 4);
  }

  ProofLimit LimitOfProof(const Plan& plan) const {
    Stop stop;
    stop.cancel = options_.cancel;
    if (!options_.time_limit) return {policy_.bound_work_limit, stop, stop};
    const absl::Time now = absl::Now();
    const absl::Duration left = start_ + *options_.time_limit - now;
    ProofLimit limit = {ProofWork(absl::ToDoubleSeconds(left)), stop, stop};
    limit.bound.deadline = now + left / 2;
    limit.certificate.deadline = now + left;
    if (proof_ && proof_->first == plan.budget_bytes) {
      limit.known = &proof_->second;
    }
    return limit;
  }

  int64_t ProofWork(double left_s) const {
    const SearchTuning::Bisection& tuning = model_.tuning.bisection;
    const double iterations =
        left_s * tuning.bound_node_iterations_per_s / (1.0 + model_.node_count);
    if (iterations < static_cast<double>(tuning.least_ranking_iterations)) {
      return ProofLimit::kNoCuts;
    }
    if (iterations < static_cast<double>(tuning.least_bound_iterations)) {
      return 0;
    }
    return std::min(policy_.bound_work_limit, static_cast<int64_t>(iterations));
  }

  void Improved(const LaidOutSchedule& laid_out) {
    if (best_ && best_->step_ns <= laid_out.step_ns) return;
    best_ = laid_out;
    if (!options_.progress) return;
    Progress progress;
    progress.elapsed_s = absl::ToDoubleSeconds(absl::Now() - start_);
    progress.peak_bytes = FindLifetimes(model_, laid_out.schedule).peak_bytes;
    progress.step_ns = static_cast<int64_t>(laid_out.step_ns);
    progress.bound_step_ns = BoundStep(model_);
    options_.progress(progress);
  }

  BudgetBisection MakeBisection(const WorkBudget& outside) const {
    return MakeBisection(outside, policy_.work_limit);
  }

  BudgetBisection MakeBisection(const WorkBudget& outside,
                                int64_t work_limit) const {
    return BudgetBisection(problem_, orders_, *kept_,
                           {ModelOptions(options_), work_limit, options_.seed},
                           outside);
  }

  // No bound is above the budget, and the search was not interrupted.
  bool MayExist() const {
    return BoundPeak(model_).bytes <= options_.budget_bytes &&
           !outside_.Interrupted();
  }

  int64_t PackWork() const { return options_.tuning.layout.pack_work; }

  // The order that needs the smallest arena: a plan without overhead.
  absl::Status TryOrders() {
    orders_ = SeedOrders(model_);
    std::vector<absl::StatusOr<LaidOutSchedule>> layouts(orders_.size());
    workers_.Run(static_cast<int>(orders_.size()), [&](int i) {
      layouts[i] =
          LayOutTightest(model_, orders_[i],
                         static_cast<double>(model_.compute_ns), PackWork());
    });
    for (absl::StatusOr<LaidOutSchedule>& laid_out : layouts) {
      LOADLINE_RETURN_IF_ERROR(laid_out.status());
      if (kept_ && kept_->arena_bytes <= laid_out->arena_bytes) continue;
      kept_ = *std::move(laid_out);
    }
    return absl::OkStatus();
  }

  // The fastest variants may need more bytes than the nodes as they are: what
  // KeepEverything returns is then a plan for all budgets above its own.
  absl::Status TryPlain() {
    Schedule plain = GivenOrder(model_);
    double step_ns = 0;
    bool fastest = true;
    for (int node = 0; node < model_.node_count; ++node) {
      Item& item = plain.items[node];
      fastest = fastest && item.id == node;
      item.id = node;
      step_ns += static_cast<double>(model_.node_ns[node]);
    }
    if (fastest) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        const LaidOutSchedule laid_out,
        LayOutTightest(model_, plain, step_ns, PackWork()));
    if (laid_out.arena_bytes <= options_.budget_bytes) Improved(laid_out);
    return absl::OkStatus();
  }

  Infeasibility Facts(int64_t smallest_met_bytes) const {
    PeakFloor floor = FloorOf(ModelOfAllPlans(problem_));
    Infeasibility facts;
    facts.budget_bytes = options_.budget_bytes;
    // Two computations that share no code must agree on what is impossible.
    facts.proven_bound_bytes =
        std::min(floor.bytes, CertifiedPeakBytes(problem_));
    facts.tightest_node = floor.node;
    facts.tightest_values = std::move(floor.values);
    facts.smallest_met_bytes = smallest_met_bytes;
    return facts;
  }

  const SolveOptions& options_;
  const EffortPolicy policy_;
  const Problem& problem_;
  const SearchModel model_;
  const absl::Time start_;
  Workers workers_;
  WorkBudget outside_;
  std::vector<Schedule> orders_;
  std::optional<LaidOutSchedule> kept_;
  std::optional<LaidOutSchedule> best_;
  std::optional<std::pair<int64_t, StepBound>> proof_;  // of a budget
  Searched searched_;
};

}  // namespace

SearchModelOptions ModelOptions(const SolveOptions& options) {
  return {options.allow_recompute, options.allow_offload, options.permissions,
          options.tuning};
}

absl::StatusOr<Plan> SearchPlan(const Problem& problem,
                                const SolveOptions& options,
                                const EffortPolicy& policy) {
  return Solver(problem, options, policy).Solve();
}

absl::StatusOr<Plan> SearchSmallestPlan(const Problem& problem,
                                        const SolveOptions& options,
                                        const EffortPolicy& policy) {
  return Solver(problem, options, policy).Smallest();
}

}  // namespace loadline::planner
