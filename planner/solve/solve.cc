// Solve: an order that fits without any overhead; else the bisection to the
// budget (budget_bisection.h), with the effort's retries. Every plan is
// replayed and verified before it is returned. Tested in solve_test.cc.
#include "planner/solve/solve.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "planner/base/status_macros.h"
#include "planner/bound/bound.h"
#include "planner/certificate/check_certificate.h"
#include "planner/certify/certify_step.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "planner/solve/budget_bisection.h"
#include "planner/solve/check_bounds.h"
#include "planner/solve/drop_redundant_transfers.h"
#include "planner/solve/explain.h"
#include "planner/solve/infeasible.h"
#include "planner/solve/smallest_start.h"
#include "planner/solve/solve_lossy.h"
#include "planner/verify/verify.h"

namespace loadline::planner {
namespace {

SearchModelOptions ModelOptions(const SolveOptions& options) {
  return {options.allow_recompute, options.allow_offload, options.permissions,
          options.tuning};
}

// Bounds cover every plan that the problem permits, whatever the options: the
// bounds in a plan file then depend on its problem alone.
SearchModel ModelOfAllPlans(const Problem& problem) {
  return MakeSearchModel(problem,
                         {.permissions = {.lossy = true, .inexact = true}});
}

// Work for the bound on the step: the nodes' own times alone, without cuts.
constexpr int64_t kNoCuts = -1;

// With at most so many nodes, the budget of the smallest plan is also solved as
// any other, from above: for the zoo's mlp (29 nodes) that gives 155 instead of
// 197 us. From unet (134) to GPT-12 (572) it gains nothing and takes three to
// eleven times as long.
constexpr size_t kMostSolvedAgain = 100;

// Sets prediction (by replay) and bounds, and verifies the plan.
absl::Status Predict(const Problem& problem, int64_t bound_work_limit,
                     Plan& plan) {
  LOADLINE_ASSIGN_OR_RETURN(plan.predicted, Replay(problem, plan));
  if (!problem.addresses) plan.arena_bytes = plan.predicted.peak_bytes;
  plan.problem_sha256 = ProblemSha256(problem);
  const SearchModel all = ModelOfAllPlans(problem);
  plan.bounds.peak_bytes =
      std::min(BoundPeak(all).bytes, CertifiedPeakBytes(problem));
  StepBoundOptions options;
  options.budget_bytes = plan.budget_bytes;
  options.known_step_ns =
      bound_work_limit == kNoCuts ? 0 : plan.predicted.step_ns;
  options.work_limit = std::max<int64_t>(0, bound_work_limit);
  const StepBound bound = BoundStepAt(all, options);
  // Only what is certified is written. The bound itself is checked as well: one
  // above the plan is an error of our own.
  plan.bounds.step_ns = bound.step_ns;
  LOADLINE_RETURN_IF_ERROR(CheckBounds(plan, bound.no_plan));
  CertifiedBound certified = CertifyStep(
      problem, bound,
      {.budget_bytes = plan.budget_bytes, .work_limit = bound_work_limit});
  plan.bounds.step_ns = certified.step_ns;
  plan.certificate = std::move(certified.certificate);
  LOADLINE_RETURN_IF_ERROR(CheckBounds(plan, false));
  return Verify(problem, plan);
}

// Predict, and the reason of every decision.
absl::Status Complete(const SearchModel& model, const Schedule& schedule,
                      int64_t bound_work_limit, Plan& plan) {
  plan.decisions = Explain(model, schedule);
  return Predict(*model.problem, bound_work_limit, plan);
}

PeakFloor FloorOf(const SearchModel& model) {
  const PeakBound bound = BoundPeak(model);
  PeakFloor floor;
  floor.bytes = bound.bytes;
  floor.node = NodeId{bound.node};
  for (int v : bound.values) floor.values.push_back(ValueId{v});
  return floor;
}

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
      const std::optional<LaidOutSchedule> start = Start();
      const bool fits = start && start->arena_bytes <= options_.budget_bytes;
      if (fits) Improved(*start);
      bisection.SearchUntilDeadline(options_.budget_bytes, improved,
                                    fits ? &*start : nullptr);
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
    const LaidOutSchedule smallest = FindSmallest(bisection, policy_.retries);
    return Finish(Faster(smallest));
  }

 private:
  // Memory is counted at the places of items, copies lie between them: a search
  // has nothing to work on without nodes.
  bool HasNodes() const { return model_.node_count > 0; }

  std::optional<LaidOutSchedule> Start() const {
    return SmallestStart(model_, orders_, BoundPeak(model_).bytes,
                         options_.seed, outside_);
  }

  // The plan of the fewest bytes that a search finds, from the start that needs
  // none.
  LaidOutSchedule FindSmallest(BudgetBisection& bisection, int retries) const {
    const std::optional<LaidOutSchedule> start = Start();
    if (start && start->arena_bytes < kept_->arena_bytes) {
      bisection.ContinueBelow(*start);
    }
    bisection.BisectDown();
    for (int retry = 0;
         retry < retries && !outside_.Interrupted() &&
         bisection.smallest().arena_bytes > BoundPeak(model_).bytes;
         ++retry) {
      bisection.SearchHarder(policy_.retry_factor);
      bisection.BisectDown();
    }
    return bisection.smallest();
  }

  LaidOutSchedule Faster(const LaidOutSchedule& plan) const {
    return MakeBisection(outside_).Faster(plan);
  }

  // Of a budget that is ruled out, nobody waits for the last byte.
  int64_t SmallestMetBytes() const {
    BudgetBisection bisection = MakeBisection(outside_);
    return FindSmallest(bisection, 0).arena_bytes;
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
    const LaidOutSchedule smallest = FindSmallest(below, policy_.retries);
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

  // Fewer bytes for half of the time, then less time in these bytes.
  absl::StatusOr<Plan> SmallestUntilDeadline() {
    WorkBudget half = outside_;
    const absl::Time now = absl::Now();
    half.stop.deadline = now + (outside_.stop.deadline - now) / 2;
    BudgetBisection bisection = MakeBisection(half);
    searched_ = bisection.searched();
    const LaidOutSchedule smallest = FindSmallest(bisection, policy_.retries);
    Improved(smallest);
    MakeBisection(outside_).SearchUntilDeadline(
        smallest.arena_bytes,
        [this](const LaidOutSchedule& faster) { Improved(faster); }, &smallest);
    return Finish(*best_);
  }

  absl::StatusOr<Plan> Finish(const LaidOutSchedule& laid_out) const {
    Plan plan = laid_out.plan;
    plan.budget_bytes = std::max(options_.budget_bytes, laid_out.arena_bytes);
    plan.searched = searched_;
    LOADLINE_RETURN_IF_ERROR(
        Complete(model_, laid_out.schedule, BoundWork(), plan));
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

  int64_t BoundWork() const {
    if (!options_.time_limit) return policy_.bound_work_limit;
    const SearchTuning::Bisection& tuning = model_.tuning.bisection;
    const double left_s =
        absl::ToDoubleSeconds(start_ + *options_.time_limit - absl::Now());
    const double iterations =
        left_s * tuning.bound_node_iterations_per_s / (1.0 + model_.node_count);
    if (iterations < static_cast<double>(tuning.least_ranking_iterations)) {
      return kNoCuts;
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
    return BudgetBisection(
        problem_, orders_, *kept_,
        {ModelOptions(options_), policy_.work_limit, options_.seed}, outside);
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
  Searched searched_;
};

absl::Status CheckOptions(const SolveOptions& options) {
  if (options.budget_bytes < 0 || options.work_limit.value_or(0) < 0 ||
      options.bound_work_limit.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        "the budget and the work limits may not be negative");
  }
  if (options.threads < 0) {
    return absl::InvalidArgumentError("the threads may not be negative");
  }
  return absl::OkStatus();
}

EffortPolicy PolicyOf(const Problem& problem, const SolveOptions& options) {
  EffortPolicy policy = PolicyOf(options.effort, std::ssize(problem.nodes),
                                 options.work_limit, options.bound_work_limit);
  if (!options.allow_retries) {
    policy.retries = 0;
    policy.long_stall_share = 0;
  }
  return policy;
}

// EffortPolicy::stall_factor: one longer search where the plan stalls long.
absl::StatusOr<Plan> SearchAgainIfItStalls(const Problem& problem,
                                           const SolveOptions& options,
                                           absl::StatusOr<Plan> plan) {
  EffortPolicy policy = PolicyOf(problem, options);
  if (!plan.ok() || policy.long_stall_share == 0 || options.time_limit) {
    return plan;
  }
  const double long_stall_ns =
      policy.long_stall_share * static_cast<double>(plan->predicted.step_ns);
  if (static_cast<double>(plan->predicted.stall_ns) <= long_stall_ns) {
    return plan;
  }
  policy.work_limit = policy.work_limit > INT64_MAX / policy.stall_factor
                          ? INT64_MAX
                          : policy.work_limit * policy.stall_factor;
  const absl::StatusOr<Plan> longer = Solver(problem, options, policy).Solve();
  return longer.ok() && longer->predicted.step_ns < plan->predicted.step_ns
             ? longer
             : plan;
}

absl::StatusOr<Plan> SolveOnce(const Problem& problem,
                               const SolveOptions& options) {
  return SearchAgainIfItStalls(
      problem, options,
      Solver(problem, options, PolicyOf(problem, options)).Solve());
}

absl::StatusOr<Plan> SmallestOnce(const Problem& problem,
                                  const SolveOptions& options) {
  absl::StatusOr<Plan> smallest =
      Solver(problem, options, PolicyOf(problem, options)).Smallest();
  if (!smallest.ok() || options.time_limit ||
      problem.nodes.size() > kMostSolvedAgain) {
    return smallest;
  }
  SolveOptions asked = options;
  asked.budget_bytes = smallest->budget_bytes;
  absl::StatusOr<Plan> faster = SolveOnce(problem, asked);
  return faster.ok() && faster->predicted.step_ns < smallest->predicted.step_ns
             ? faster
             : smallest;
}

}  // namespace

absl::StatusOr<Plan> Solve(const Problem& problem,
                           const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  if (MayUseLossyCodecs(problem, options)) {
    return SolveLossy(problem, options, SolveOnce, SmallestOnce);
  }
  return SolveOnce(problem, options);
}

absl::StatusOr<Plan> SolveSmallest(const Problem& problem,
                                   const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  SolveOptions smallest = options;
  smallest.budget_bytes = 0;
  LOADLINE_RETURN_IF_ERROR(CheckOptions(smallest));
  if (MayUseLossyCodecs(problem, smallest)) {
    return SolveSmallestLossy(problem, smallest, SmallestOnce);
  }
  return SmallestOnce(problem, smallest);
}

absl::StatusOr<PeakFloor> FindPeakFloor(const Problem& problem,
                                        const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  return FloorOf(MakeSearchModel(problem, ModelOptions(options)));
}

absl::StatusOr<Plan> KeepEverything(const Problem& problem) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  const SearchModel model =
      MakeSearchModel(problem, {false, false, Permissions::None(), {}});
  LOADLINE_ASSIGN_OR_RETURN(
      LaidOutSchedule laid_out,
      LayOutTightest(model, GivenOrder(model),
                     static_cast<double>(model.compute_ns),
                     model.tuning.layout.pack_work));
  Plan plan = std::move(laid_out.plan);
  plan.budget_bytes = laid_out.arena_bytes;
  // The plan is as fast as any: no program is needed to prove it.
  LOADLINE_RETURN_IF_ERROR(Complete(model, laid_out.schedule, 0, plan));
  return plan;
}

absl::StatusOr<Plan> Reprice(const Problem& priced, Plan plan,
                             const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(priced));
  LOADLINE_RETURN_IF_ERROR(
      Predict(priced, PolicyOf(priced, options).bound_work_limit, plan));
  return plan;
}

}  // namespace loadline::planner
