// See window_search.h. Branches over all steps that free a value at the highest
// position, the most excess area per added time first. A branch ends if it
// cannot beat the best: its step is as slow already (an edit that only adds
// items makes no step faster), or will be with the cheapest reruns that could
// free the bytes over the target at that position. Most edits commute, so
// different branches reach the same sequence; it is expanded once. Tested in
// window_search_test.cc and window_test.cc.
#include "planner/search/window_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/schedule/mix.h"
#include "planner/search/edits.h"
#include "planner/search/window.h"

namespace loadline::planner {
namespace {

// Work of one step: most are rejected before the lanes are simulated.
int64_t StepPrice(const SearchState& state) {
  return 1 + WorkBudget{}.PriceOf(state) /
                 state.model().tuning.window.step_price_part;
}

uint64_t HashOf(const SearchState& state) {
  uint64_t hash = 1;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    hash = Mix(hash, state.item(item));
  }
  for (size_t c = 0; c < state.model().chains.size(); ++c) {
    if (state.host_home(static_cast<int>(c))) hash = Mix(hash, c);
  }
  return hash;
}

// The branch and bound from a committed state over its target.
class WindowSearch {
 public:
  WindowSearch(SearchState& state, double best_ns, double floor_ns,
               WorkBudget& effort)
      : state_(state),
        model_(state.model()),
        tuning_(model_.tuning.window),
        effort_(effort),
        floor_ns_(floor_ns),
        best_ns_(best_ns),
        least_ns_(model_.tuning.greedy.least_share *
                      static_cast<double>(model_.compute_ns) +
                  model_.tuning.greedy.least_ns),
        group_(model_.job_count(), -1) {
    std::vector<int> there;
    NoteItems(there);
  }

  // False if a limit was hit. `best` is what was found, if anything.
  bool Run(int most_steps, std::optional<Schedule>* best) {
    most_steps_ = most_steps;
    levels_.resize(most_steps + 1);
    if (state_.excess_area() <= 0) {
      if (state_.Makespan() < Limit()) Take(state_.Makespan());
    } else {
      Expand(0);
    }
    *best = std::move(best_);
    return complete_;
  }

 private:
  enum class Means { kRerun, kCopy, kHome, kStash };
  struct Step {
    int value = 0;
    Means means = Means::kRerun;
    int choice = 0;  // a coding, a lead, the mode of a chain
    double score = 0, step_ns = 0;
  };
  // The lists of one depth, kept so that they are not allocated again.
  struct Level {
    std::vector<Step> steps, branches;
    std::vector<int> added;  // items of the step that is followed
  };
  // An edit that frees bytes at a position, and its least time.
  struct Relief {
    double bytes = 0, ns = 0;
  };

  double Limit() const { return best_ns_ - tuning_.least_gain_ns; }

  void Take(double step_ns) {
    if (std::round(step_ns) < floor_ns_) return;
    best_ns_ = step_ns;
    best_ = state_.ToSchedule();
  }

  void Expand(int depth) {
    int peak_item = state_.item_at(state_.PeakSlot());
    if (peak_item < 0 ||
        static_cast<double>(state_.compute_ns()) + LeastRelief(peak_item) >=
            Limit()) {
      return;
    }
    FindBranches(peak_item, depth);
    Level& level = levels_[depth];
    for (const Step& step : level.branches) {
      if (effort_.Spent()) complete_ = false;
      if (!complete_ || depth + 1 >= most_steps_) return;
      if (step.step_ns >= Limit()) continue;
      if (!Apply(step, peak_item)) continue;
      state_.Commit();
      NoteItems(level.added);
      Expand(depth + 1);
      for (int item : level.added) {
        known_[item] = 0;
        state_.Remove(item);
      }
      if (step.means == Means::kHome) {
        state_.SetHome(model_.chain_of[step.value], false);
      }
      state_.Commit();
    }
  }

  // Finds the steps that need further ones, best first; records schedules that
  // are within the target.
  void FindBranches(int peak_item, int depth) {
    std::vector<Step>& steps = levels_[depth].steps;
    std::vector<Step>& branches = levels_[depth].branches;
    branches.clear();
    FindSteps(peak_item, steps);
    const double old_excess_area = state_.excess_area();
    const double old_ns = state_.Makespan();
    for (Step& step : steps) {
      if (effort_.Spent()) {
        complete_ = false;
        return;
      }
      effort_.left -= StepPrice(state_);
      if (Apply(step, peak_item) && Worthwhile(old_excess_area, depth + 1)) {
        step.step_ns = state_.Makespan(Limit());
        if (step.step_ns < Limit()) {
          if (state_.excess_area() <= 0) {
            Take(step.step_ns);
          } else {
            const double slower = std::max(0.0, step.step_ns - old_ns);
            step.score =
                (old_excess_area - state_.excess_area()) / (slower + least_ns_);
            branches.push_back(step);
          }
        }
      }
      state_.Undo(0);
    }
    // Of equal ones, in the order of FindSteps.
    std::sort(branches.begin(), branches.end(),
              [](const Step& a, const Step& b) {
                if (a.score != b.score) return a.score > b.score;
                return std::tie(a.value, a.means, a.choice) <
                       std::tie(b.value, b.means, b.choice);
              });
  }

  bool Worthwhile(double old_excess_area, int depth) {
    if (!state_.valid() || state_.excess_area() >= old_excess_area ||
        static_cast<double>(state_.compute_ns()) >= Limit()) {
      return false;
    }
    // Worth another visit only with fewer steps so far: then more are left.
    const auto [seen, inserted] = seen_.try_emplace(HashOf(state_), depth);
    if (!inserted && seen->second <= depth) return false;
    seen->second = depth;
    return true;
  }

  void FindSteps(int peak_item, std::vector<Step>& steps) const {
    steps.clear();
    const int slot = state_.slot_of(peak_item);
    for (int v = 0; v < model_.value_count; ++v) {
      Gap gap;
      if (model_.bytes[v] == 0 || !FindGap(state_, v, slot, &gap)) continue;
      const int node = model_.producer[v];
      if (node >= 0 && model_.may_rerun[node]) {
        for (int mode = 0; mode < (OnlyReruns() ? 2 : 3); ++mode) {
          steps.push_back({v, Means::kRerun, mode});
        }
      }
      if (MayCopy(gap, slot)) {
        for (size_t lead = 0; lead < tuning_.leads.size(); ++lead) {
          steps.push_back({v, Means::kCopy, static_cast<int>(lead)});
        }
      }
      if (MayGoHome(gap)) steps.push_back({v, Means::kHome});
      for (size_t c = 0; c < model_.codings[v].size(); ++c) {
        steps.push_back({v, Means::kStash, static_cast<int>(c)});
      }
    }
  }

  bool OnlyReruns() const {
    return model_.d2h_bytes_per_ns <= 0 &&
           model_.representation_count() == model_.value_count;
  }

  // Only without moving or removing another copy: items that are only added can
  // be removed again, and make no step faster.
  bool MayCopy(const Gap& gap, int slot) const {
    const auto is = [&](int item, ItemKind kind) {
      return item >= 0 && state_.item(item).kind == kind;
    };
    return model_.may_copy[gap.value] && !is(gap.to_item, ItemKind::kOut) &&
           !is(gap.from_item, ItemKind::kIn) &&
           (state_.OnHost(gap.value, slot) || state_.OutItem(gap.value) < 0);
  }

  bool MayGoHome(const Gap& gap) const {
    const int chain = model_.chain_of[gap.value];
    return chain >= 0 && model_.may_copy[gap.value] &&
           model_.chains[chain].can_host && !state_.host_home(chain) &&
           (gap.from_item < 0 || gap.to_item < 0) &&
           state_.OutItem(model_.chains[chain].versions.front()) < 0;
  }

  bool Apply(const Step& step, int peak_item) {
    const int slot = state_.slot_of(peak_item);
    Gap gap;
    if (!FindGap(state_, step.value, slot, &gap)) return false;
    switch (step.means) {
      case Means::kRerun:
        return EditRecompute(
            state_, gap,
            {.items = step.choice == 0 ? 1 : tuning_.chain_limit,
             .copies = step.choice == 2 ? ~0u : 0u});
      case Means::kCopy:
        return EditCopy(state_, gap, slot, tuning_.leads[step.choice]);
      case Means::kHome:
        return EditHome(state_, model_.chain_of[step.value], slot,
                        tuning_.leads[0]);
      case Means::kStash:
        return EditStash(state_, gap, step.choice, false);
    }
    return false;
  }

  // The items that are new since the last call.
  void NoteItems(std::vector<int>& added) {
    added.clear();
    for (int item = state_.next(-1); item >= 0; item = state_.next(item)) {
      if (item >= static_cast<int>(known_.size())) known_.resize(2 * item + 1);
      if (known_[item]) continue;
      known_[item] = 1;
      added.push_back(item);
    }
  }

  // The least time of reruns and codecs that could free the bytes over the
  // target at the item: a fractional knapsack, so a lower bound. Copies count
  // as free of charge. A rerun frees all values that its node makes.
  double LeastRelief(int peak_item) {
    const int slot = state_.slot_of(peak_item);
    double over = state_.BytesAt(slot) - state_.target();
    reliefs_.clear();
    used_.clear();
    for (int v = 0; v < model_.value_count; ++v) {
      Gap gap;
      if (model_.bytes[v] == 0) continue;
      // A value read here for the last time may be overwritten by an output.
      const Item& what = state_.item(peak_item);
      const bool read =
          what.kind == ItemKind::kRun && model_.Overwrites(what.id, v);
      if (!read && !FindGap(state_, v, slot, &gap)) continue;
      AddReliefs(v);
    }
    for (int node : used_) group_[node] = -1;
    std::sort(reliefs_.begin(), reliefs_.end(),
              [](const Relief& a, const Relief& b) {
                return a.ns * b.bytes < b.ns * a.bytes;
              });
    double ns = 0;
    for (const Relief& relief : reliefs_) {
      if (over <= 0) break;
      ns += relief.ns * std::min(1.0, over / relief.bytes);
      over -= relief.bytes;
    }
    return over > 0 ? std::numeric_limits<double>::infinity() : ns;
  }

  void AddReliefs(int value) {
    const double bytes = static_cast<double>(model_.bytes[value]);
    if (model_.may_copy[value]) {
      reliefs_.push_back({bytes, 0});
      return;
    }
    for (const Coding& coding : model_.codings[value]) {
      const double saved =
          bytes - static_cast<double>(model_.bytes[coding.encoded]);
      if (saved <= 0) continue;
      reliefs_.push_back(
          {saved, static_cast<double>(model_.node_ns[coding.decode])});
    }
    const int node = model_.producer[value];
    if (node < 0 || !model_.may_rerun[node]) return;
    if (group_[node] < 0) {
      group_[node] = static_cast<int>(reliefs_.size());
      used_.push_back(node);
      reliefs_.push_back(
          {0,
           static_cast<double>(model_.node_ns[model_.jobs_of[node].front()])});
    }
    reliefs_[group_[node]].bytes += bytes;
  }

  SearchState& state_;
  const SearchModel& model_;
  const SearchTuning::Window& tuning_;
  WorkBudget& effort_;
  const double floor_ns_;
  double best_ns_;
  const double least_ns_;
  int most_steps_ = 0;
  bool complete_ = true;
  std::optional<Schedule> best_;
  std::vector<Level> levels_;
  absl::flat_hash_map<uint64_t, int> seen_;  // steps to get there
  std::vector<char> known_;                  // by item
  std::vector<Relief> reliefs_;
  std::vector<int> group_, used_;  // by node: its relief; nodes with one
};

}  // namespace

bool SearchWindow(SearchState& state, const WindowGoal& goal,
                  WorkBudget& effort, std::optional<Schedule>* best) {
  return WindowSearch(state, goal.best_ns, goal.floor_ns, effort)
      .Run(goal.most_steps, best);
}

}  // namespace loadline::planner
