// See point_search.h. No single start is best everywhere: greedy descents are
// quick and good where copies hide behind compute, annealing from an order is
// better where the order must change. So both run, then reheats from the best.
// Windows solved exactly then find improvements that need several exchanges at
// once. A proven bound ends the search. Constants and switches are in
// SearchTuning::PointSearch. Tested in point_search_test.cc.
#include "planner/search/point_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "planner/search/eviction_start.h"
#include "planner/search/peak_cut_seed.h"
#include "planner/search/persistent_placement.h"
#include "planner/search/window.h"

namespace loadline::planner {
namespace {

class PointSearch {
 public:
  PointSearch(const SearchModel& model, const std::vector<Schedule>& orders,
              const PointSearchOptions& options, const WorkBudget& outside)
      : model_(model),
        tuning_(model.tuning.point),
        orders_(orders),
        options_(options),
        effort_(outside),
        copies_(model.d2h_bytes_per_ns > 0) {
    effort_.left = options.work;
  }

  std::vector<FoundSchedule> Run(const std::vector<Schedule>& starts) {
    for (const Schedule& start : orders_) Offer(start);
    for (const Schedule& start : starts) Offer(start);
    if (Done()) return std::move(finds_);
    if (IsLarge()) Evict();
    const bool descend = !IsLarge() || finds_.empty();
    if (options_.repair) {
      if (descend) Repair(starts.front());
      if (MustEvict()) Evict();
    } else {
      if (descend) GreedyDescents(starts);
      if (MustEvict()) Evict();
      if (!Done()) PlaceBest();
      if (!Done()) FindBound();
      if (!Done()) ColdAnneal();
      if (!Done()) WarmAnneal(starts);
    }
    const size_t reheats =
        tuning_.reheat ? tuning_.reheat_temperatures.size() : 0;
    for (size_t round = 0; round < reheats && !Done(); ++round) Reheat(round);
    if (!Done() && effort_.left > 0) PlaceBest();
    if (!Done() && !options_.repair) SolveWindows();
    if (!Done()) Clean();
    return std::move(finds_);
  }

 private:
  bool Done() const {
    return effort_.Interrupted() || proof_.none ||
           (!finds_.empty() && finds_.front().step_ns <= EnoughNs());
  }

  // Adds a schedule within the target to the finds.
  void Keep(Schedule schedule, double step_ns) {
    step_ns = std::round(step_ns);
    if (step_ns < options_.floor_ns || step_ns > kMostStepNs) return;
    size_t at = finds_.size();
    while (at > 0 && finds_[at - 1].step_ns > step_ns) --at;
    if (at > 0 && finds_[at - 1].step_ns == step_ns) return;
    finds_.insert(finds_.begin() + static_cast<std::ptrdiff_t>(at),
                  FoundSchedule{std::move(schedule), step_ns});
    if (finds_.size() > tuning_.most_finds) finds_.pop_back();
  }

  // Keeps a schedule from elsewhere if it is within the target.
  void Offer(const Schedule& schedule) {
    const Lifetimes lives = FindLifetimes(model_, schedule);
    if (!lives.valid || lives.peak_bytes > options_.target_bytes) return;
    const bool copied = std::any_of(
        schedule.items.begin(), schedule.items.end(),
        [](const Item& item) { return item.kind != ItemKind::kRun; });
    if (copied && !copies_) return;
    Keep(schedule, FindTimes(model_, schedule).step_ns);
  }

  // With copies, the order with early updates is usually the best start.
  const Schedule& Order() const {
    return copies_ && orders_.size() > 1 ? orders_[1] : orders_[0];
  }

  void Descend(const Schedule& start, double price, int64_t work) {
    WorkBudget effort = effort_;
    effort.left = work;
    SearchState state(model_, start, options_.target_bytes);
    GreedyOptions greedy;
    greedy.lane_price = price;
    if (state.valid() && LowerPeak(state, greedy, effort)) {
      const double step_ns = state.Makespan();
      Keep(state.ToSchedule(), step_ns);
    }
    effort_.left -= work - effort.left;
  }

  bool MayRerun() const {
    return std::any_of(model_.may_rerun.begin(), model_.may_rerun.end(),
                       [](char may) { return may != 0; });
  }

  // The work that a first descent may always spend.
  int64_t LeastDescent() const {
    const SearchState state(model_, Order(), options_.target_bytes);
    return tuning_.descent_edits_per_node * model_.node_count *
           effort_.PriceOf(state);
  }

  void GreedyDescents(const std::vector<Schedule>& starts) {
    const int64_t reserve = static_cast<int64_t>(
        static_cast<double>(options_.work) * (1 - tuning_.greedy_share));
    // The first may spend more than its share: without it there may be no plan.
    Descend(Order(), tuning_.lane_prices[0],
            std::max(options_.work, LeastDescent()));
    const auto descend = [&](const Schedule& start, double price) {
      if (Done() || effort_.left <= reserve) return;
      Descend(start, price, effort_.left - reserve);
    };
    PeakCutSeeds();
    if (copies_ && tuning_.lane_price_descents) {
      descend(Order(), tuning_.lane_prices[1]);
      descend(Order(), tuning_.lane_prices[2]);
    }
    if (!tuning_.start_descents) return;
    for (const Schedule& start : starts) descend(start, tuning_.lane_prices[0]);
  }

  // Descents from seeds of peak_cut_seed.h. As far as a seed is over the target
  // elsewhere, the next one asks for that many bytes fewer.
  void PeakCutSeeds() {
    const SearchTuning::PeakCutSeed& tuning = model_.tuning.peak_cut_seed;
    if (!tuning.enabled || Done() || !MayRerun() ||
        model_.node_count > tuning.most_nodes) {
      return;
    }
    const int64_t least = LeastDescent();
    int64_t target_bytes = options_.target_bytes;
    for (int tried = 0; tried < tuning.most_seeds && !Done(); ++tried) {
      const PeakCutSeed seed =
          SeedFromPeakCut(model_, Order(), target_bytes,
                          {std::max(tuning.least_iterations,
                                    options_.work / tuning.iteration_part)});
      effort_.left -= seed.iterations * tuning.work_per_iteration;
      if (!seed.schedule) return;
      const Lifetimes lives = FindLifetimes(model_, *seed.schedule);
      if (!lives.valid) return;
      // Like the first descent, this may spend more than its share.
      Descend(*seed.schedule, tuning_.lane_prices[0],
              finds_.empty() ? std::max(options_.work, least)
                             : std::max(options_.work / tuning.work_part,
                                        least / tuning.least_work_part));
      const int64_t excess_bytes = lives.peak_bytes - options_.target_bytes;
      if (excess_bytes <= 0 || excess_bytes >= target_bytes) return;
      target_bytes -= excess_bytes;
    }
  }

  // Too large for descents.
  bool IsLarge() const {
    return model_.tuning.eviction.enabled &&
           model_.node_count >= model_.tuning.eviction.many_nodes;
  }

  bool MustEvict() const {
    return options_.must_find && finds_.empty() && !IsLarge();
  }

  // Starts that need no search, from one order after the other. A large problem
  // takes the first; elsewhere another may have the better layout.
  void Evict() {
    if (!model_.tuning.eviction.enabled) return;
    for (size_t i = 0; i < orders_.size(); ++i) {
      // With copies, updates run early: see Order.
      const size_t from = copies_ ? (i + 1) % orders_.size() : i;
      if (effort_.Interrupted()) return;
      const std::optional<Schedule> start = EvictionStart(
          model_, orders_[from],
          {.target_bytes = options_.target_bytes, .seed = options_.seed});
      if (start) Offer(*start);
      if (start && IsLarge()) return;
    }
  }

  void PlaceBest() {
    const SearchTuning::PersistentPlacement& tuning =
        model_.tuning.persistent_placement;
    if (!tuning.enabled || !copies_ || finds_.empty()) return;
    SearchState state(model_, finds_.front().schedule, options_.target_bytes);
    WorkBudget effort = effort_;
    // Like the first descent, this may spend more than its share.
    effort.left = std::max(options_.work / tuning.work_part,
                           LeastDescent() / tuning.least_work_part);
    const int64_t granted = effort.left;
    if (PlacePersistentValues(state, effort, options_.floor_ns)) {
      const double step_ns = state.Makespan();
      Keep(state.ToSchedule(), step_ns);
    }
    effort_.left -= granted - effort.left;
  }

  void Repair(const Schedule& start) {
    if (!tuning_.repair) return;
    Descend(start, tuning_.lane_prices[0], effort_.left / 2);
    AnnealFrom({start}, tuning_.repair_share, tuning_.repair_cooling);
  }

  // A proven bound of the step ends the search like the floor does.
  void FindBound() {
    if (!tuning_.stop_at_bound) return;
    if (options_.proof != nullptr &&
        options_.proof->target_bytes == options_.target_bytes) {
      proof_ = *options_.proof;
      return;
    }
    if (copies_ || !MayRerun() ||
        model_.node_count > tuning_.most_bound_nodes) {
      return;
    }
    StepBoundOptions bound;
    bound.budget_bytes = options_.target_bytes;
    bound.stop = effort_.stop;
    bound.work_limit =
        std::min(tuning_.most_bound_iterations,
                 options_.work / tuning_.work_per_bound_iteration);
    if (!finds_.empty()) {
      bound.known_step_ns = static_cast<int64_t>(finds_.front().step_ns);
    }
    const StepBound proven = BoundStepAt(model_, bound);
    proof_.target_bytes = options_.target_bytes;
    // A find refutes a bound above it. Such a bound is an error of our own,
    // which Solve reports when it bounds the final plan; no search ends on it.
    const bool refuted =
        !finds_.empty() &&
        (proven.no_plan || proven.step_ns > bound.known_step_ns);
    if (!refuted) {
      proof_.enough_ns =
          (1 + tuning_.bound_rounding) * static_cast<double>(proven.step_ns);
      proof_.none = proven.no_plan;
      proof_.bound = proven;
    }
    if (options_.proof != nullptr) *options_.proof = proof_;
  }

  double EnoughNs() const {
    return std::max(options_.floor_ns, proof_.enough_ns);
  }

  // How many walks share so much work: where one ends is luck, but each must be
  // long enough.
  int64_t WalksFor(int64_t work, int64_t price) const {
    const int64_t walks =
        work / price / (tuning_.moves_per_walk_per_node * model_.node_count);
    return std::max<int64_t>(options_.least_walks,
                             std::clamp<int64_t>(walks, 1, tuning_.most_walks));
  }

  // Anneals with `share` of the point's work, in turns from each of the starts.
  void AnnealFrom(const std::vector<Schedule>& starts, double share,
                  const Cooling& cooling) {
    const int64_t granted = std::min(
        effort_.left,
        static_cast<int64_t>(share * static_cast<double>(options_.work)));
    std::vector<AnnealWalk> walks;
    const auto add = [&](const Schedule& start) {
      AnnealWalk walk;
      walk.state =
          std::make_unique<SearchState>(model_, start, options_.target_bytes);
      walk.seed = options_.seed * 64 + ++round_;
      if (walk.state->valid()) walks.push_back(std::move(walk));
    };
    for (const Schedule& start : starts) add(start);
    if (walks.empty()) return;
    const int64_t price = MovePrice(*walks.front().state);
    const int64_t count = WalksFor(granted, price);
    for (int64_t i = std::ssize(walks); i < count; ++i) {
      add(starts[i % std::ssize(starts)]);
    }
    AnnealOptions anneal;
    anneal.cooling = cooling;
    anneal.moves = granted / price / std::ssize(walks);
    if (anneal.moves < tuning_.least_moves) return;
    anneal.floor_ns = options_.floor_ns;
    anneal.enough_ns = EnoughNs();
    anneal.segments = tuning_.segments;
    WorkBudget effort = effort_;
    effort.left = granted;
    Anneal(absl::MakeSpan(walks), anneal, effort);
    effort_.left -= granted - effort.left;
    Take(walks);
  }

  void Take(std::vector<AnnealWalk>& walks) {
    for (AnnealWalk& walk : walks) {
      if (walk.best) {
        Keep(*std::move(walk.best), walk.best_step_ns);
      } else {
        unfinished_ = walk.state->ToSchedule();
      }
    }
    if (!Done() && !finds_.empty()) FinishGreedily(walks);
  }

  // Descends from where anneals ended above the target. Only if a plan is
  // known: otherwise all later reheats would start from this one.
  void FinishGreedily(std::vector<AnnealWalk>& walks) {
    if (!tuning_.finish_greedily) return;
    WorkBudget effort = effort_;
    effort.left = std::min(effort_.left, options_.work / tuning_.finish_part);
    std::vector<int64_t> left(walks.size(), effort.left);
    std::vector<std::optional<FoundSchedule>> found(walks.size());
    effort.ForEach(static_cast<int>(walks.size()), [&](int i) {
      SearchState& state = *walks[i].state;
      WorkBudget own = effort;
      if (state.excess_area() > 0 &&
          LowerPeak(state, {.lane_price = tuning_.lane_prices[0]}, own)) {
        const double step_ns = state.Makespan();
        found[i] = {state.ToSchedule(), step_ns};
      }
      left[i] = own.left;
    });
    for (size_t i = 0; i < walks.size(); ++i) {
      effort_.left -= effort.left - left[i];
      if (found[i]) Keep(std::move(found[i]->schedule), found[i]->step_ns);
    }
  }

  // Anneals from the order.
  void ColdAnneal() {
    if (!tuning_.cold_anneal) return;
    const double share =
        copies_ ? tuning_.cold_share_with_copies : tuning_.cold_share;
    const int64_t moves = static_cast<int64_t>(
        share * static_cast<double>(options_.work) /
        static_cast<double>(MovePrice(SearchState(model_, Order(), 0))));
    const int64_t enough =
        tuning_.least_cold_moves_per_node * model_.node_count;
    if (moves < enough && !finds_.empty()) return;
    AnnealFrom({Order()}, share,
               copies_ ? tuning_.cold_with_copies : tuning_.cold);
  }

  // Anneals from the plan of the next larger budget, which is the last start,
  // and from the best schedule.
  void WarmAnneal(const std::vector<Schedule>& starts) {
    if (!tuning_.warm_anneal) return;
    std::vector<Schedule> from;
    if (!starts.empty()) from.push_back(starts.back());
    if (!finds_.empty()) from.push_back(finds_.front().schedule);
    if (from.empty()) return;
    AnnealFrom(from, tuning_.warm_share, tuning_.warm);
  }

  void Reheat(size_t round) {
    if (effort_.left <= 0) return;  // also if the point's work is 0
    const double share =
        static_cast<double>(effort_.left) / static_cast<double>(options_.work) /
        static_cast<double>(tuning_.reheat_temperatures.size() - round);
    if (!finds_.empty()) {
      Cooling cooling = tuning_.reheat_cooling;
      cooling.first_temperature = tuning_.reheat_temperatures[round];
      AnnealFrom({finds_.front().schedule}, share, cooling);
      return;
    }
    // No plan yet, so probably there is none: try once only.
    if (round > 0) return;
    AnnealFrom({unfinished_ ? *unfinished_ : orders_[0]}, share,
               tuning_.unfinished);
  }

  // With work of its own, on top of the point's.
  void SolveWindows() {
    const SearchTuning::Window& tuning = model_.tuning.window;
    if (!tuning.enabled) return;
    const auto work = static_cast<int64_t>(tuning.work_share *
                                           static_cast<double>(options_.work));
    if (finds_.empty() || work <= 0) return;
    const Schedule& best = finds_.front().schedule;
    if (best.items.size() > tuning.most_schedule_items) return;
    SearchState state(model_, best, options_.target_bytes);
    WorkBudget effort = effort_;
    effort.left = work;
    const WindowReport report =
        ImproveWindows(state,
                       {.window_work = work / tuning.window_part,
                        .floor_ns = options_.floor_ns},
                       effort);
    if (report.improved == 0) return;
    const double step_ns = state.Makespan();
    Keep(state.ToSchedule(), step_ns);
  }

  void Clean() {
    if (finds_.empty()) return;
    SearchState state(model_, finds_.front().schedule, options_.target_bytes);
    WorkBudget effort = effort_;
    effort.left = std::numeric_limits<int64_t>::max() / 2;
    CleanUp(state, effort, options_.floor_ns);
    const double step_ns = state.Makespan();
    Keep(state.ToSchedule(), step_ns);
  }

  const SearchModel& model_;
  const SearchTuning::PointSearch& tuning_;
  const std::vector<Schedule>& orders_;
  const PointSearchOptions& options_;
  WorkBudget effort_;
  const bool copies_;
  PointBound proof_;
  std::vector<FoundSchedule> finds_;    // fastest first
  std::optional<Schedule> unfinished_;  // end of an anneal without a find
  uint64_t round_ = 0;                  // anneals so far
};

}  // namespace

std::vector<FoundSchedule> SearchAtPoint(const SearchModel& model,
                                         const std::vector<Schedule>& orders,
                                         const std::vector<Schedule>& starts,
                                         const PointSearchOptions& options,
                                         const WorkBudget& outside) {
  return PointSearch(model, orders, options, outside).Run(starts);
}

}  // namespace loadline::planner
