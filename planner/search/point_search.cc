// See point_search.h. Neither start is best everywhere: greedy descents are
// quick and good where copies hide, annealing from an order is better where the
// order must change; so both, and then reheats from whichever won. What is left
// wants several exchanges at once: windows solved exactly find those. A proven
// bound ends the search. Tested in point_search_test.cc and solve_test.cc.
#include "planner/search/point_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "planner/search/peak_cut_seed.h"
#include "planner/search/persistent_placement.h"
#include "planner/search/window.h"

namespace loadline::planner {
namespace {

constexpr double kLanePrices[] = {0.05, 0.0, 0.3};
constexpr size_t kMostFinds = 4;
// Of the work.
constexpr double kGreedyShare = 0.1;
constexpr double kColdShare = 0.45;
constexpr double kColdShareWithCopies = 0.52;
constexpr double kWarmShare = 0.15;
constexpr double kPolishShare = 0.1;
constexpr double kRepairShare = 0.5;
constexpr double kWindowShare = 0.03;
// One window gets this part of that.
constexpr int64_t kWindowPart = 24;
constexpr size_t kMostWindowItems = 5000;
// First temperatures of the reheats.
constexpr double kReheats[] = {0.1, 0.2, 0.05, 0.1};
// Of a cold start where values can be copied: its order is near enough.
constexpr double kColdWithCopies = 0.35;
constexpr double kUnfinishedTemperature = 0.2;
constexpr int64_t kFinishPart = 50;
// Fewer moves than this per item are too few to anneal an order.
constexpr int64_t kColdMovesPerItem = 60;
constexpr int64_t kMovesPerColdAnneal = 800;  // per item
constexpr int64_t kMostColdAnneals = 4;
constexpr int64_t kLeastMoves = 200;
constexpr int64_t kDescentPerNode = 20;
// Of the work, and of a descent's least.
constexpr int64_t kRehomePart = 5;
constexpr int64_t kLeastRehomePart = 6;
// Starts from a cut: how many, the parts of the work that a descent from one
// gets where there is a plan already, simplex iterations and their price.
constexpr int kMostCutStarts = 3;
constexpr int64_t kCutPart = 10;
constexpr int64_t kLeastCutPart = 4;  // of a descent's least
constexpr int kMostCutNodes = 100'000;
constexpr int64_t kLeastCutIterations = 1000;
constexpr int64_t kWorkPerCutIteration = 10;
// Simplex iterations for a bound, at most, and work that is worth one of them.
constexpr int64_t kProofWork = 4000;
constexpr int64_t kWorkPerProof = 100;
constexpr double kRounding = 1e-7;  // of a bound
constexpr int kMostProvenNodes = 1000;

class PointSearch {
 public:
  PointSearch(const SearchModel& model, const std::vector<Schedule>& orders,
              const PointSearchOptions& options, const WorkBudget& outside)
      : model_(model),
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
    if (options_.repair) {
      Repair(starts.front());
    } else {
      GreedyDescents(starts);
      if (!Done()) RehomeBest();
      if (!Done()) Prove();
      if (!Done()) Cold();
      // The plan of the next larger number of bytes.
      if (!Done() && !starts.empty()) Warm(starts.back(), kWarmShare);
    }
    if (!Done() && !finds_.empty()) {
      Polish(finds_.front().schedule, kPolishShare);
    }
    for (size_t round = 0; round < std::size(kReheats) && !Done(); ++round) {
      Reheat(round);
    }
    if (!Done() && effort_.left > 0) RehomeBest();
    if (!Done() && !options_.repair) SolveWindows();
    if (!Done()) Clean();
    return std::move(finds_);
  }

 private:
  bool Done() const {
    return effort_.Interrupted() || proof_.none ||
           (!finds_.empty() && finds_.front().step_ns <= EnoughNs());
  }

  void Keep(Schedule schedule, double step_ns) {
    step_ns = std::round(step_ns);
    if (step_ns < options_.floor_ns) return;
    size_t at = finds_.size();
    while (at > 0 && finds_[at - 1].step_ns > step_ns) --at;
    if (at > 0 && finds_[at - 1].step_ns == step_ns) return;
    finds_.insert(finds_.begin() + static_cast<std::ptrdiff_t>(at),
                  FoundSchedule{std::move(schedule), step_ns});
    if (finds_.size() > kMostFinds) finds_.pop_back();
  }

  void Offer(const Schedule& schedule) {
    const Lifetimes lives = FindLifetimes(model_, schedule);
    if (!lives.valid || lives.peak_bytes > options_.target_bytes) return;
    const bool copied = std::any_of(
        schedule.items.begin(), schedule.items.end(),
        [](const Item& item) { return item.kind != ItemKind::kRun; });
    if (copied && !copies_) return;
    Keep(schedule, FindTimes(model_, schedule).step_ns);
  }

  // The order with early updates is usually the best start.
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

  // Some twenty candidates per node.
  int64_t LeastDescent() const {
    const SearchState state(model_, Order(), options_.target_bytes);
    return kDescentPerNode * model_.node_count * effort_.PriceOf(state);
  }

  void GreedyDescents(const std::vector<Schedule>& starts) {
    const int64_t reserve = static_cast<int64_t>(
        static_cast<double>(options_.work) * (1 - kGreedyShare));
    // The first may cost more than its share: without it there may be nothing.
    Descend(Order(), kLanePrices[0], std::max(options_.work, LeastDescent()));
    const auto descend = [&](const Schedule& start, double price) {
      if (Done() || effort_.left <= reserve) return;
      Descend(start, price, effort_.left - reserve);
    };
    CutStarts();
    if (copies_) {
      descend(Order(), kLanePrices[1]);
      descend(Order(), kLanePrices[2]);
    }
    for (const Schedule& start : starts) descend(start, kLanePrices[0]);
  }

  // Several exchanges at once (peak_cut_seed.h). What is then too high
  // elsewhere is asked for with so many bytes fewer.
  void CutStarts() {
    if (Done() || !MayRerun() || model_.node_count > kMostCutNodes) return;
    const int64_t least = LeastDescent();
    int64_t target_bytes = options_.target_bytes;
    for (int tried = 0; tried < kMostCutStarts && !Done(); ++tried) {
      const PeakCutSeed start = SeedFromPeakCut(
          model_, Order(), target_bytes,
          {std::max(kLeastCutIterations, options_.work / kWorkPerProof)});
      effort_.left -= start.iterations * kWorkPerCutIteration;
      if (!start.schedule) return;
      const Lifetimes lives = FindLifetimes(model_, *start.schedule);
      if (!lives.valid) return;
      // Like the first descent, it may cost more than its share.
      Descend(*start.schedule, kLanePrices[0],
              finds_.empty()
                  ? std::max(options_.work, least)
                  : std::max(options_.work / kCutPart, least / kLeastCutPart));
      const int64_t excess_bytes = lives.peak_bytes - options_.target_bytes;
      if (excess_bytes <= 0 || excess_bytes >= target_bytes) return;
      target_bytes -= excess_bytes;
    }
  }

  void RehomeBest() {
    if (!copies_ || finds_.empty()) return;
    SearchState state(model_, finds_.front().schedule, options_.target_bytes);
    WorkBudget effort = effort_;
    // Like the first descent, it may cost more than its share.
    effort.left = std::max(options_.work / kRehomePart,
                           LeastDescent() / kLeastRehomePart);
    const int64_t granted = effort.left;
    if (PlacePersistentValues(state, effort, options_.floor_ns)) {
      const double step_ns = state.Makespan();
      Keep(state.ToSchedule(), step_ns);
    }
    effort_.left -= granted - effort.left;
  }

  void Repair(const Schedule& start) {
    Descend(start, kLanePrices[0], effort_.left / 2);
    Polish(start, kRepairShare);
  }

  // What nothing undercuts is as good an end as the floor. Where values can
  // be copied, bounds are rarely met.
  void Prove() {
    if (options_.proof != nullptr &&
        options_.proof->target_bytes == options_.target_bytes) {
      proof_ = *options_.proof;
      return;
    }
    if (copies_ || !MayRerun() || model_.node_count > kMostProvenNodes) return;
    StepBoundOptions bound;
    bound.budget_bytes = options_.target_bytes;
    bound.work_limit = std::min(kProofWork, options_.work / kWorkPerProof);
    if (!finds_.empty()) {
      bound.known_step_ns = static_cast<int64_t>(finds_.front().step_ns);
    }
    const StepBound proven = BoundStepAt(model_, bound);
    proof_ = {
        .target_bytes = options_.target_bytes,
        .enough_ns = (1 + kRounding) * static_cast<double>(proven.step_ns),
        .none = proven.no_plan};
    if (options_.proof != nullptr) *options_.proof = proof_;
  }

  double EnoughNs() const {
    return std::max(options_.floor_ns, proof_.enough_ns);
  }

  void Warm(const Schedule& start, double share) {
    AnnealOptions anneal;
    anneal.first_temperature = 0.2;
    anneal.first_lambda = 1;
    AnnealFrom(start, share, anneal);
  }

  // Spends at most `share` of the work.
  void AnnealFrom(const Schedule& start, double share, AnnealOptions anneal) {
    WorkBudget effort = effort_;
    effort.left = std::min(
        effort_.left,
        static_cast<int64_t>(share * static_cast<double>(options_.work)));
    const int64_t granted = effort.left;
    SearchState state(model_, start, options_.target_bytes);
    if (!state.valid()) return;
    anneal.moves = effort.left / MovePrice(state);
    if (anneal.moves < kLeastMoves) return;
    anneal.seed = options_.seed * 64 + ++round_;
    anneal.floor_ns = options_.floor_ns;
    anneal.enough_ns = EnoughNs();
    std::optional<Schedule> best;
    double step_ns = std::numeric_limits<double>::infinity();
    Anneal(state, anneal, effort, &best, &step_ns);
    effort_.left -= granted - effort.left;
    if (best) {
      Keep(*std::move(best), step_ns);
    } else {
      unfinished_ = state.ToSchedule();
    }
    if (state.excess_area() > 0 && !finds_.empty()) FinishGreedily(state);
  }

  // What an anneal left only a little above the target. Not where nothing else
  // is known: all later reheats would start from it.
  void FinishGreedily(SearchState& state) {
    WorkBudget effort = effort_;
    effort.left = std::min(effort_.left, options_.work / kFinishPart);
    const int64_t granted = effort.left;
    if (LowerPeak(state, {.lane_price = kLanePrices[0]}, effort)) {
      const double step_ns = state.Makespan();
      Keep(state.ToSchedule(), step_ns);
    }
    effort_.left -= granted - effort.left;
  }

  // Several where each has moves enough: which valley an anneal settles in is
  // luck.
  void Cold() {
    const double share = copies_ ? kColdShareWithCopies : kColdShare;
    const int64_t moves = static_cast<int64_t>(
        share * static_cast<double>(options_.work) /
        static_cast<double>(MovePrice(SearchState(model_, Order(), 0))));
    const int64_t enough = kColdMovesPerItem * model_.node_count;
    if (moves < enough && !finds_.empty()) return;
    const int64_t anneals = std::clamp<int64_t>(
        moves / (kMovesPerColdAnneal * model_.node_count), 1, kMostColdAnneals);
    for (int64_t i = 0; i < anneals && !Done(); ++i) {
      AnnealOptions anneal;
      if (copies_) anneal.first_temperature = kColdWithCopies;
      AnnealFrom(Order(), share / static_cast<double>(anneals), anneal);
    }
  }

  void Polish(const Schedule& start, double share) {
    AnnealOptions anneal;
    anneal.first_temperature = 0.08;
    anneal.first_lambda = 6;
    AnnealFrom(start, share, anneal);
  }

  void Reheat(size_t round) {
    if (effort_.left <= 0) return;  // also where no work was granted at all
    const double share = static_cast<double>(effort_.left) /
                         static_cast<double>(options_.work) /
                         static_cast<double>(std::size(kReheats) - round);
    AnnealOptions anneal;
    anneal.first_temperature = kReheats[round];
    anneal.first_lambda = 3;
    if (!finds_.empty()) {
      AnnealFrom(finds_.front().schedule, share, anneal);
      return;
    }
    // Nothing yet: probably there is nothing.
    if (round > 0) return;
    anneal.first_temperature = kUnfinishedTemperature;
    anneal.last_lambda *= 10;
    AnnealFrom(unfinished_ ? Schedule(*unfinished_) : orders_[0], share,
               anneal);
  }

  // With work of its own, on top of what the rest has spent.
  void SolveWindows() {
    const auto work =
        static_cast<int64_t>(kWindowShare * static_cast<double>(options_.work));
    if (finds_.empty() || work <= 0) return;
    const Schedule& best = finds_.front().schedule;
    if (best.items.size() > kMostWindowItems) return;
    SearchState state(model_, best, options_.target_bytes);
    WorkBudget effort = effort_;
    effort.left = work;
    const WindowReport report = ImproveWindows(
        state,
        {.window_work = work / kWindowPart, .floor_ns = options_.floor_ns},
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
  const std::vector<Schedule>& orders_;
  const PointSearchOptions& options_;
  WorkBudget effort_;
  const bool copies_;
  PointBound proof_;
  std::vector<FoundSchedule> finds_;  // fastest first
  std::optional<Schedule> unfinished_;
  uint64_t round_ = 0;
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
