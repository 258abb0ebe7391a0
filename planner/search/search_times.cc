// Times of the lanes of a SearchState, from the first changed item on: a pass
// in sequence order (as LaneSimulator's, see simulate_lanes.cc) that starts
// from the committed times of the item before and stops once what a lane still
// has to do leads past the limit. Lanes that slow each other down:
// search_coupled.cc. Tested in search_state_test.cc.
#include <algorithm>

#include "planner/search/search_state.h"

namespace loadline::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

// The last item before a slot, -1 if there is none.
int SearchState::ItemBefore(int slot) const {
  for (int s = std::min(slot, slot_count()) - 1; s >= 0; --s) {
    if (slots_[s] >= 0) return slots_[s];
  }
  return -1;
}

// When what `maker` makes is there.
inline double SearchState::ReadyAt(int maker) const {
  if (maker < 0) return 0;
  const bool before = !times_stale_ && slot_of_[maker] < first_changed_;
  const ItemTimes& at = before ? times_[maker] : trial_[maker];
  return items_[maker].kind == ItemKind::kIn ? at.in_free : at.passed;
}

double SearchState::RunLanes(double limit_ns) {
  int item = head_;
  ItemTimes at;
  if (!times_stale_) {
    const int before = ItemBefore(first_changed_);
    if (before >= 0) at = times_[before];
    item = next(before);
  }
  if (TooLate(at, limit_ns)) return kNever;
  trial_begin_ = item;
  // Beyond this slot nothing has changed if the lanes' state has not.
  int unlike = last_changed_;
  for (; item >= 0; item = next_[item]) {
    const Item what = items_[item];
    const int slot = slot_of_[item];
    if (what.kind == ItemKind::kRun) {
      const int copy = SourceOf(item);
      if (copy >= 0) {
        Stall(ReadyAt(copy), at);
        if (TooLate(at, limit_ns)) return kNever;
      }
      at.passed += static_cast<double>(model_.node_ns[what.id]);
    } else if (what.kind == ItemKind::kOut) {
      const double ready =
          model_.copies_stop_compute ? at.passed : ReadyAt(SourceOf(item));
      if (ready > at.out_free) {
        at.out_idle += ready - at.out_free;
        at.out_free = ready;
      }
      at.out_free += model_.out_ns[what.id];
      Stall(at.out_free, at);
      if (TooLate(at, limit_ns)) return kNever;
    } else {
      if (at.passed > at.in_free) {
        at.in_idle += at.passed - at.in_free;
        at.in_free = at.passed;
      }
      at.in_free += model_.in_ns[what.id];
      if (model_.copies_stop_compute) Stall(at.in_free, at);
      if (TooLate(at, limit_ns)) return kNever;
    }
    trial_[item] = at;
    const ItemTimes& old = times_[item];
    if (slot > unlike && at.passed == old.passed &&
        at.out_free == old.out_free && at.in_free == old.in_free &&
        !times_stale_) {
      trial_end_ = next_[item];
      return end_ns_ > limit_ns ? kNever : end_ns_;
    }
    const bool in = what.kind == ItemKind::kIn;
    if (slot <= last_changed_ ||
        (in ? at.in_free != old.in_free : at.passed != old.passed)) {
      unlike = std::max(unlike, ReachOf(item));
    }
  }
  trial_end_ = -1;
  const double end = std::max({at.passed, at.out_free, at.in_free});
  return end > limit_ns ? kNever : end;
}

double SearchState::Makespan(double limit_ns) {
  const double compute = static_cast<double>(compute_ns_);
  if (model_.d2h_bytes_per_ns <= 0) {
    return compute > limit_ns ? kNever : compute;
  }
  const double switches_ns = model_.switch_ns * copy_count_;
  const double lanes_ns = limit_ns - switches_ns;
  const double end =
      model_.bidirectional < 1 ? RunCoupledLanes(lanes_ns) : RunLanes(lanes_ns);
  trial_done_ = end < kNever;
  trial_ns_ = end;
  return end > lanes_ns ? kNever : end + switches_ns;
}

void SearchState::TakeTimes() {
  int item = trial_begin_;
  for (; item != trial_end_; item = next_[item]) {
    times_[item] = trial_[item];
    if (!lanes_.empty()) lanes_[item] = trial_lanes_[item];
    passed_ns_[item] = times_[item].passed;
  }
  // The rest passes when it did, so lanes with more to do were less idle.
  const Counts& old = committed_;
  const double compute = static_cast<double>(compute_ns_ - old.compute_ns);
  const double out = out_ns_ - old.out_ns, in = in_ns_ - old.in_ns;
  if (compute != 0 || out != 0 || in != 0) {
    for (; item >= 0; item = next_[item]) {
      times_[item].stall -= compute;
      times_[item].out_idle -= out;
      times_[item].in_idle -= in;
    }
  }
  end_ns_ = trial_ns_;
  times_stale_ = false;
}

}  // namespace loadline::planner
