// See window.h. Branches over the ways to free each value at the highest
// position, the most area per added time first. A branch ends where it cannot
// beat the best: its step is as slow already (an edit that only adds items
// makes no step faster), or will be with the cheapest reruns that could free
// the bytes over the target at that position. Edits commute mostly, so a
// sequence of items is reached on many ways; it is expanded once. Tested in
// window_test.cc.
#include "planner/window.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/edits.h"
#include "planner/mix.h"

namespace loadline::planner {
namespace {

// A bit more than rounding may hide.
constexpr double kLeastGainNs = 0.5;

// Most steps are given up before the lanes are simulated.
int64_t StepPrice(const SearchState& state) {
  return 1 + Effort{}.PriceOf(state) / 16;
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
               Effort& effort)
      : state_(state),
        model_(state.model()),
        effort_(effort),
        floor_ns_(floor_ns),
        best_ns_(best_ns),
        least_ns_(1e-7 * static_cast<double>(model_.compute_ns) + 1e-3),
        group_(model_.job_count(), -1) {
    NoteItems();
  }

  // False if a limit was hit. `best` is what was found, if anything.
  bool Run(int most_steps, std::optional<Schedule>* best) {
    most_steps_ = most_steps;
    if (state_.area() <= 0) {
      if (state_.Makespan() < Limit()) Take(state_.Makespan());
    } else {
      Expand(0);
    }
    *best = std::move(best_);
    return complete_;
  }

  double best_ns() const { return best_ns_; }

 private:
  enum class Way { kRerun, kCopy, kHome, kStash };
  struct Step {
    int value = 0;
    Way way = Way::kRerun;
    int choice = 0;  // a coding, a lead, the mode of a chain
    double score = 0, step_ns = 0;
  };
  // What frees some bytes at a position, and its least time.
  struct Relief {
    double bytes = 0, ns = 0;
  };

  double Limit() const { return best_ns_ - kLeastGainNs; }

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
    for (const Step& step : Branches(peak_item, depth)) {
      if (effort_.Spent()) complete_ = false;
      if (!complete_ || depth + 1 >= most_steps_) return;
      if (step.step_ns >= Limit()) continue;
      if (!Apply(step, peak_item)) continue;
      state_.Commit();
      const std::vector<int> added = NoteItems();
      Expand(depth + 1);
      for (int item : added) {
        known_[item] = 0;
        state_.Remove(item);
      }
      if (step.way == Way::kHome) {
        state_.SetHome(model_.chain_of[step.value], false);
      }
      state_.Commit();
    }
  }

  // The steps worth a further one, best first; takes what fits.
  std::vector<Step> Branches(int peak_item, int depth) {
    std::vector<Step> steps = Steps(peak_item), kept;
    const double old_area = state_.area();
    const double old_ns = state_.Makespan();
    for (Step& step : steps) {
      if (effort_.Spent()) {
        complete_ = false;
        return kept;
      }
      effort_.left -= StepPrice(state_);
      if (Apply(step, peak_item) && Worthwhile(old_area, depth + 1)) {
        step.step_ns = state_.Makespan(Limit());
        if (step.step_ns < Limit()) {
          if (state_.area() <= 0) {
            Take(step.step_ns);
          } else {
            const double slower = std::max(0.0, step.step_ns - old_ns);
            step.score = (old_area - state_.area()) / (slower + least_ns_);
            kept.push_back(step);
          }
        }
      }
      state_.Undo(0);
    }
    std::stable_sort(
        kept.begin(), kept.end(),
        [](const Step& a, const Step& b) { return a.score > b.score; });
    return kept;
  }

  bool Worthwhile(double old_area, int depth) {
    if (!state_.valid() || state_.area() >= old_area ||
        static_cast<double>(state_.compute_ns()) >= Limit()) {
      return false;
    }
    // With fewer steps so far, more are left.
    const auto [seen, inserted] = seen_.try_emplace(HashOf(state_), depth);
    if (!inserted && seen->second <= depth) return false;
    seen->second = depth;
    return true;
  }

  std::vector<Step> Steps(int peak_item) {
    std::vector<Step> steps;
    const int slot = state_.slot_of(peak_item);
    for (int v = 0; v < model_.value_count; ++v) {
      Gap gap;
      if (model_.bytes[v] == 0 || !FindGap(state_, v, slot, &gap)) continue;
      const int node = model_.producer[v];
      if (node >= 0 && model_.may_rerun[node]) {
        for (int mode = 0; mode < (OnlyReruns() ? 2 : 3); ++mode) {
          steps.push_back({v, Way::kRerun, mode});
        }
      }
      if (MayCopy(gap, slot)) {
        for (size_t lead = 0; lead < std::size(kWindowLeads); ++lead) {
          steps.push_back({v, Way::kCopy, static_cast<int>(lead)});
        }
      }
      if (MayGoHome(gap)) steps.push_back({v, Way::kHome});
      for (size_t c = 0; c < model_.codings[v].size(); ++c) {
        steps.push_back({v, Way::kStash, static_cast<int>(c)});
      }
    }
    return steps;
  }

  bool OnlyReruns() const {
    return model_.d2h_bytes_per_ns <= 0 &&
           model_.form_count() == model_.value_count;
  }

  // Without moving or taking out another token: what is added can be taken
  // away again, and makes no step faster.
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
    switch (step.way) {
      case Way::kRerun:
        return EditRecompute(state_, gap,
                             {.items = step.choice == 0 ? 1 : kWindowChain,
                              .copies = step.choice == 2 ? ~0u : 0u});
      case Way::kCopy:
        return EditCopy(state_, gap, slot, kWindowLeads[step.choice]);
      case Way::kHome:
        return EditHome(state_, model_.chain_of[step.value], slot,
                        kWindowLeads[0]);
      case Way::kStash:
        return EditStash(state_, gap, step.choice, false);
    }
    return false;
  }

  // The items that are new since the last call.
  std::vector<int> NoteItems() {
    std::vector<int> added;
    for (int item = state_.next(-1); item >= 0; item = state_.next(item)) {
      if (item >= static_cast<int>(known_.size())) known_.resize(2 * item + 1);
      if (known_[item]) continue;
      known_[item] = 1;
      added.push_back(item);
    }
    return added;
  }

  // Least time of reruns and codecs that could free the bytes over the target
  // at the item, in parts if need be; copies may take none. A rerun frees all
  // that its node makes.
  double LeastRelief(int peak_item) {
    const int slot = state_.slot_of(peak_item);
    double over = state_.BytesAt(slot) - state_.target();
    reliefs_.clear();
    used_.clear();
    for (int v = 0; v < model_.value_count; ++v) {
      Gap gap;
      if (model_.bytes[v] == 0) continue;
      // What is read here for the last time may make room for an output.
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
          bytes - static_cast<double>(model_.bytes[coding.form]);
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
          {0, static_cast<double>(model_.node_ns[model_.ways[node].front()])});
    }
    reliefs_[group_[node]].bytes += bytes;
  }

  SearchState& state_;
  const Model& model_;
  Effort& effort_;
  const double floor_ns_;
  double best_ns_;
  const double least_ns_;
  int most_steps_ = 0;
  bool complete_ = true;
  std::optional<Schedule> best_;
  absl::flat_hash_map<uint64_t, int> seen_;  // steps to get there
  std::vector<char> known_;                  // by item
  std::vector<Relief> reliefs_;
  std::vector<int> group_, used_;  // by node: its relief; nodes with one
};

// What a window is made of, in order. The first run of a node stays.
std::vector<int> OptionalItems(const SearchState& state) {
  const Model& model = state.model();
  std::vector<char> ran(model.node_count, 0);
  std::vector<int> items;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item& what = state.item(item);
    const int node =
        what.kind == ItemKind::kRun ? model.jobs[what.id].node : -1;
    if (what.kind != ItemKind::kOut && (node < 0 || ran[node])) {
      items.push_back(item);
    }
    if (node >= 0) ran[node] = 1;
  }
  return items;
}

// Time over that of all nodes once, of reruns, codecs and waiting, up to each
// of the items, and up to the end.
std::vector<double> ExtraNs(SearchState& state, const std::vector<int>& items) {
  std::vector<double> extra;
  size_t next = 0;
  double sum = 0, passed = 0;
  for (int item = state.next(-1); item >= 0; item = state.next(item)) {
    const Item& what = state.item(item);
    const double run_ns =
        what.kind == ItemKind::kRun
            ? static_cast<double>(state.model().node_ns[what.id])
            : 0;
    // Without copies nothing waits, and the state keeps no times.
    const double now =
        state.token_count() > 0 ? state.PassedNs(item) : passed + run_ns;
    const bool optional = next < items.size() && items[next] == item;
    sum += now - passed - (optional ? 0 : run_ns);
    passed = now;
    if (optional) {
      ++next;
      extra.push_back(sum);
    }
  }
  extra.push_back(sum);
  return extra;
}

// Takes the items out; returns how many were.
int Drop(SearchState& state, const std::vector<int>& items) {
  int dropped = 0;
  for (int item : items) {
    if (!state.alive(item)) continue;  // went with another
    const Item what = state.item(item);
    const int chain =
        what.kind == ItemKind::kIn ? state.model().chain_of[what.id] : -1;
    const size_t mark = state.Mark();
    const bool done = chain >= 0 && state.host_home(chain)
                          ? EditUnhome(state, chain)
                          : EditDrop(state, item);
    if (done && state.valid()) {
      ++dropped;
    } else {
      state.Undo(mark);
    }
  }
  return dropped;
}

class Windows {
 public:
  Windows(SearchState& state, const WindowOptions& options, Effort& effort)
      : state_(state), options_(options), effort_(effort) {}

  WindowReport Run() {
    if (!state_.valid() || state_.area() > 0) return report_;
    state_.Respread();
    for (int size = options_.least_items; size <= options_.most_items;
         size += size / 2) {
      const WindowReport before = report_;
      while (Pass(size) && !effort_.Spent()) {
      }
      const int searched = report_.searched - before.searched;
      if (effort_.Spent() ||
          2 * (report_.finished - before.finished) < searched ||
          size >= static_cast<int>(OptionalItems(state_).size())) {
        break;
      }
    }
    return report_;
  }

 private:
  // All windows of the size; whether any became better.
  bool Pass(int size) {
    const int improved = report_.improved;
    for (int start : Starts(size)) {
      if (effort_.Spent() || AtFloor()) return false;
      const std::vector<int> items = OptionalItems(state_);
      const int count = static_cast<int>(items.size());
      if (start >= count) continue;
      Solve({items.begin() + start,
             items.begin() + std::min(count, start + size)});
    }
    return report_.improved > improved;
  }

  bool AtFloor() {
    return std::round(state_.Makespan()) <=
           std::max(options_.floor_ns,
                    static_cast<double>(state_.model().compute_ns));
  }

  // Half a window apart, the most time in it first.
  std::vector<int> Starts(int size) {
    const std::vector<int> items = OptionalItems(state_);
    const int count = static_cast<int>(items.size());
    const std::vector<double> extra = ExtraNs(state_, items);
    std::vector<std::pair<double, int>> starts;
    for (int at = 0; at < count; at += std::max(1, size / 2)) {
      const int last = std::min(count, at + size) - 1;
      // What waits for a copy back comes after it.
      const double ns = extra[last + 1] - (at > 0 ? extra[at - 1] : 0);
      if (ns > 0) starts.emplace_back(-ns, at);
      if (last == count - 1) break;
    }
    std::sort(starts.begin(), starts.end());
    std::vector<int> result;
    result.reserve(starts.size());
    for (const auto& [ns, at] : starts) result.push_back(at);
    return result;
  }

  void Solve(const std::vector<int>& items) {
    const Schedule old = state_.ToSchedule();
    const double old_ns = state_.Makespan();
    const int dropped = Drop(state_, items);
    if (dropped == 0) return;
    state_.Commit();
    Effort effort = effort_;
    effort.left = std::min(effort_.left, options_.window_work);
    const int64_t granted = effort.left;
    std::optional<Schedule> best;
    WindowSearch search(state_, old_ns, options_.floor_ns, effort);
    ++report_.searched;
    report_.finished += search.Run(dropped + kWindowSpareSteps, &best);
    report_.improved += best.has_value();
    effort_.left -= granted - effort.left;
    state_.Load(best ? *best : old);
  }

  SearchState& state_;
  const WindowOptions options_;
  Effort& effort_;
  WindowReport report_;
};

}  // namespace

WindowReport ImproveWindows(SearchState& state, const WindowOptions& options,
                            Effort& effort) {
  return Windows(state, options, effort).Run();
}

}  // namespace loadline::planner
