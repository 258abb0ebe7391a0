// Greedy descent. At the highest point every idle value is a candidate: rerun
// it later, copy it out and back, keep it encoded, or let it live on the host;
// and the node that runs there may use a variant with less workspace. A cheap
// estimate ranks the candidates, the best of each kind are priced exactly, and
// the largest drop of excess area per added step time (plus a price of lane
// time) is taken. Tested in greedy_test.cc.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/search/edits.h"
#include "planner/search/search.h"

namespace loadline::planner {
namespace {

constexpr double kLimitSlack = 1 + 1e-9;  // for rounding

enum class Means { kRerun, kCopy, kHome, kStash, kVariant };

// One edit that frees bytes at the highest point.
struct Candidate {
  Means means = Means::kRerun;
  Gap gap;
  int chain = -1;  // of kHome
  int choice = 0;  // coding of kStash, job of kVariant
  double lead = 0;
  double estimate = 0;  // higher is better
};

class Greedy {
 public:
  Greedy(SearchState& state, const GreedyOptions& options, WorkBudget& effort)
      : state_(state),
        model_(state.model()),
        tuning_(model_.tuning.greedy),
        options_(options),
        effort_(effort),
        least_ns_(tuning_.least_share * static_cast<double>(model_.compute_ns) +
                  tuning_.least_ns) {}

  bool Run() {
    for (int round = 0; state_.excess_area() > 0; ++round) {
      if (effort_.Spent()) return false;
      if (round % tuning_.respread_rounds == 0) state_.Respread();
      if (state_.excess_area() <= 0) break;
      if (!LowerOnce()) return false;
    }
    return true;
  }

 private:
  // Prices the most promising candidates at the highest point, then takes the
  // best and, while the point is still too high, others nearly as good.
  bool LowerOnce() {
    const int peak = state_.PeakSlot();
    excess_area_ = state_.excess_area();
    step_ns_ = state_.Makespan();
    SumExcess();
    Collect(peak);
    scores_.clear();
    double best = 0;
    for (size_t i = 0; i < priced_.size(); ++i) {
      const double score =
          Price(priced_[i], peak, tuning_.nearly_as_good * best);
      if (score > 0) scores_.emplace_back(score, i);
      best = std::max(best, score);
      state_.Undo(0);
    }
    if (scores_.empty()) return false;
    std::sort(scores_.begin(), scores_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    int peak_item = state_.item_at(peak);
    bool any = false;
    for (const auto& [score, i] : scores_) {
      Candidate candidate = priced_[i];
      const int slot = peak_item >= 0 ? state_.slot_of(peak_item) : peak;
      if (any &&
          (peak_item < 0 || score < tuning_.nearly_as_good * best ||
           state_.BytesAt(slot) <= state_.target() ||
           !(candidate.means == Means::kVariant ||
             FindGap(state_, candidate.gap.value, slot, &candidate.gap)))) {
        continue;
      }
      const double least = tuning_.nearly_as_good * best;
      const double now = Price(candidate, any ? slot : peak, least);
      if (now <= 0 || now < least) {
        state_.Undo(0);
        continue;
      }
      state_.Commit();
      excess_area_ = state_.excess_area();
      step_ns_ = state_.Makespan();
      any = true;
    }
    return any;
  }

  // Makes the edit; 0 if it is impossible, does not help, or is surely worth
  // less than `least`: then its lanes are not followed to the end.
  double Price(const Candidate& candidate, int peak, double least) {
    effort_.left -= effort_.PriceOf(state_);
    if (!Apply(candidate, peak) || !state_.valid() ||
        state_.excess_area() >= excess_area_) {
      return 0;
    }
    const double drop = excess_area_ - state_.excess_area();
    const double fixed_ns = options_.lane_price * lane_ns_ + least_ns_;
    double limit_ns = std::numeric_limits<double>::infinity();
    if (least > 0) {
      const double most_ns = kLimitSlack * drop / least - fixed_ns;
      if (most_ns < 0) return 0;
      limit_ns = step_ns_ + most_ns;
    }
    const double slower = std::max(0.0, state_.Makespan(limit_ns) - step_ns_);
    return drop / (slower + fixed_ns);
  }

  bool Apply(const Candidate& candidate, int peak) {
    lane_ns_ = 0;
    if (candidate.means == Means::kStash) {
      return EditStash(state_, candidate.gap, candidate.choice, false);
    }
    if (candidate.means == Means::kVariant) {
      const int item = state_.item_at(peak);
      if (state_.item(item).id == candidate.choice) return false;
      EditVariant(state_, item, candidate.choice);
      return true;
    }
    const double copy_ns = model_.in_ns[candidate.gap.value];
    if (candidate.means == Means::kRerun) {
      return EditRecompute(state_, candidate.gap,
                           {.items = tuning_.chain_limit});
    }
    const int copies = state_.copy_count();
    const bool done =
        candidate.means == Means::kCopy
            ? EditCopy(state_, candidate.gap, peak, candidate.lead)
            : EditHome(state_, candidate.chain, peak, candidate.lead);
    lane_ns_ = copy_ns * std::max(0, state_.copy_count() - copies);
    return done;
  }

  // Prefix sums of slots over the target and of the bytes over it.
  void SumExcess() {
    const int count = state_.slot_count();
    over_count_.assign(count + 1, 0);
    over_bytes_.assign(count + 1, 0);
    out_ns_.assign(count + 1, 0);
    for (int s = 0; s < count; ++s) {
      const int item = state_.item_at(s);
      const bool out = item >= 0 && state_.item(item).kind == ItemKind::kOut;
      out_ns_[s + 1] =
          out_ns_[s] + (out ? model_.OutLeadNs(state_.item(item).id) : 0);
      const double over = std::max(0.0, state_.BytesAt(s) - state_.target());
      over_count_[s + 1] = over_count_[s] + (over > 0 ? 1 : 0);
      over_bytes_[s + 1] = over_bytes_[s] + over;
    }
  }

  double Saved(const Gap& gap) const {
    const int lower = gap.from_slot + 1, upper = gap.to_slot;
    if (upper <= lower) return 0;
    const double bytes = static_cast<double>(model_.bytes[gap.value]);
    return std::min(bytes * (over_count_[upper] - over_count_[lower]),
                    over_bytes_[upper] - over_bytes_[lower]);
  }

  void Collect(int peak) {
    reruns_.clear();
    copies_.clear();
    stashes_.clear();
    for (int v = 0; v < model_.value_count; ++v) {
      if (model_.bytes[v] == 0) continue;
      Candidate candidate;
      candidate.lead = tuning_.short_lead;
      if (!FindGap(state_, v, peak, &candidate.gap)) continue;
      const double saved = Saved(candidate.gap);
      AddRerun(candidate, saved);
      AddCopies(candidate, saved, peak);
      AddStashes(candidate, saved);
    }
    priced_.clear();
    TakeBest(reruns_, tuning_.priced_reruns);
    TakeBest(copies_, tuning_.priced_copies);
    TakeBest(stashes_, tuning_.priced_encodings);
    AddVariants(peak);
  }

  // The best by estimate; of equal ones those that were collected first.
  void TakeBest(std::vector<Candidate>& list, std::ptrdiff_t count) {
    const auto better = [](const Candidate& a, const Candidate& b) {
      if (a.estimate != b.estimate) return a.estimate > b.estimate;
      return std::tie(a.gap.value, a.lead, a.choice) <
             std::tie(b.gap.value, b.lead, b.choice);
    };
    const auto end =
        list.begin() + std::min<std::ptrdiff_t>(count, std::ssize(list));
    std::partial_sort(list.begin(), end, list.end(), better);
    priced_.insert(priced_.end(), list.begin(), end);
  }

  void AddRerun(Candidate candidate, double saved) {
    const int node = model_.producer[candidate.gap.value];
    if (!options_.allow_rerun || node < 0 || !model_.may_rerun[node]) {
      return;
    }
    candidate.estimate =
        saved /
        (static_cast<double>(model_.node_ns[model_.jobs_of[node].front()]) +
         least_ns_);
    reruns_.push_back(candidate);
  }

  void AddStashes(Candidate candidate, double saved) {
    const int value = candidate.gap.value;
    candidate.means = Means::kStash;
    for (size_t c = 0; c < model_.codings[value].size(); ++c) {
      const Coding& coding = model_.codings[value][c];
      const double share =
          1 - static_cast<double>(model_.bytes[coding.encoded]) /
                  static_cast<double>(model_.bytes[value]);
      candidate.choice = static_cast<int>(c);
      candidate.estimate = saved * share /
                           (static_cast<double>(model_.node_ns[coding.encode] +
                                                model_.node_ns[coding.decode]) +
                            least_ns_);
      stashes_.push_back(candidate);
    }
  }

  // Variants with less workspace for the run at the highest point.
  void AddVariants(int peak) {
    const int item = state_.item_at(peak);
    if (item < 0 || state_.item(item).kind != ItemKind::kRun) return;
    const int job = state_.item(item).id;
    if (model_.jobs[job].node < 0) return;
    Candidate candidate;
    candidate.means = Means::kVariant;
    for (int other : model_.jobs_of[model_.jobs[job].node]) {
      if (model_.workspace_bytes[other] >= model_.workspace_bytes[job]) {
        continue;
      }
      candidate.choice = other;
      priced_.push_back(candidate);
    }
  }

  void AddCopies(Candidate candidate, double saved, int peak) {
    const int value = candidate.gap.value;
    if (!options_.allow_copy || !model_.may_copy[value]) return;
    const Gap& gap = candidate.gap;
    const double lane = model_.in_ns[value] + model_.out_ns[value];
    const int last = gap.to_item >= 0 ? gap.to_item : state_.previous(-1);
    const double idle =
        state_.PassedNs(last) -
        (gap.from_item >= 0 ? state_.PassedNs(gap.from_item) : 0);
    const double stall =
        model_.copies_exclude_compute ? lane : std::max(0.0, lane - idle);
    candidate.estimate =
        saved /
        (stall + (options_.lane_price + tuning_.least_lane_price) * lane +
         least_ns_);
    const int chain = model_.chain_of[value];
    const bool home =
        chain >= 0 && !state_.host_home(chain) && model_.chains[chain].can_host;
    if (home && (gap.from_item < 0 || gap.to_item < 0)) {
      candidate.means = Means::kHome;
      candidate.chain = chain;
      copies_.push_back(candidate);
      if (gap.to_item < 0) return;
    }
    candidate.means = Means::kCopy;
    copies_.push_back(candidate);
    candidate.lead = tuning_.long_lead;
    copies_.push_back(candidate);
    // With time for the copies that the lane holds before this one.
    const double queued_ns = out_ns_[peak] - out_ns_[gap.from_slot + 1];
    if (queued_ns <= 0) return;
    candidate.lead = tuning_.short_lead + queued_ns / model_.OutLeadNs(value);
    copies_.push_back(candidate);
  }

  SearchState& state_;
  const SearchModel& model_;
  const SearchTuning::Greedy& tuning_;
  const GreedyOptions options_;
  WorkBudget& effort_;
  const double least_ns_;
  double excess_area_ = 0, step_ns_ = 0;  // of the committed state
  double lane_ns_ = 0;  // lane time that the applied candidate adds
  // Prefix sums over slots.
  std::vector<double> over_count_, over_bytes_, out_ns_;
  std::vector<Candidate> reruns_, copies_, stashes_, priced_;
  std::vector<std::pair<double, size_t>> scores_;  // and index in priced_
};

}  // namespace

bool LowerPeak(SearchState& state, const GreedyOptions& options,
               WorkBudget& effort) {
  return Greedy(state, options, effort).Run();
}

}  // namespace loadline::planner
