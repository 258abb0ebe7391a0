// Times of the lanes of a SearchState, from the first changed item on: a pass
// in sequence order (as LaneSimulator's, see lanes.cc) that starts from the
// committed times of the item before and stops once the compute still to be
// done leads past the limit. Lanes that slow each other down are simulated by
// LaneSimulator, but only if the same pass with both lanes at full rate, which
// cannot be slower, stays within the limit. Tested in search_state_test.cc.
#include <algorithm>

#include "planner/search_state.h"

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

// When the instance of `value` that a touch at `slot` reads was made.
double SearchState::ReadyOf(int value, int slot) const {
  int maker = -1;
  for (const Touch& touch : touches_[value]) {
    if (touch.slot >= slot) break;
    if (touch.makes()) maker = touch.item;
  }
  if (maker < 0) return 0;
  const bool before = !times_stale_ && slot_of_[maker] < first_changed_;
  return before ? times_[maker].ready : trial_[maker].ready;
}

// The last slot at which it matters when `item` was ready.
int SearchState::LastWaiter(int item) const {
  const Item& what = items_[item];
  if (what.kind == ItemKind::kOut) return 0;
  if (what.kind == ItemKind::kIn) return touches_[what.id].back().slot;
  int slot = 0;
  const Use* use = uses_.data() + use_begin_[what.id + 1];
  const Use* begin = uses_.data() + use_begin_[what.id];
  while (use != begin && ((--use)->flags & kMakes) != 0) {
    if (out_count_[use->value] > 0) {
      slot = std::max(slot, touches_[use->value].back().slot);
    }
  }
  return slot;
}

double SearchState::RunLanes(double limit_ns) {
  int item = head_;
  ItemTimes at;
  if (!times_stale_) {
    const int before = ItemBefore(first_changed_);
    if (before >= 0) at = times_[before];
    item = next(before);
  }
  // The limit on the time compute may have lost by any item.
  const double most_lost = limit_ns - static_cast<double>(compute_ns_);
  // Beyond this slot nothing has changed if the lanes' state has not.
  int unlike = last_changed_;
  for (; item >= 0; item = next_[item]) {
    const Item what = items_[item];
    const int slot = slot_of_[item];
    if (what.kind == ItemKind::kRun) {
      const Use* use = uses_.data() + use_begin_[what.id];
      const Use* end = uses_.data() + use_begin_[what.id + 1];
      for (; use != end && (use->flags & kMakes) == 0; ++use) {
        if (in_count_[use->value] > 0) {
          at.passed = std::max(at.passed, ReadyOf(use->value, slot));
        }
      }
      const double ns = static_cast<double>(model_.node_ns[what.id]);
      at.passed += ns;
      at.work += ns;
      at.ready = at.passed;
    } else if (what.kind == ItemKind::kOut) {
      at.out_free = std::max(at.out_free, ReadyOf(what.id, slot)) +
                    model_.out_ns[what.id];
      at.passed = std::max(at.passed, at.out_free);
    } else {
      at.in_free = std::max(at.in_free, at.passed) + model_.in_ns[what.id];
      at.ready = at.in_free;
    }
    if (at.passed - at.work > most_lost) return kNever;
    trial_[item] = at;
    const ItemTimes& old = times_[item];
    if (slot > unlike && at.passed == old.passed &&
        at.out_free == old.out_free && at.in_free == old.in_free &&
        !times_stale_) {
      trial_end_ = next_[item];
      return end_ns_ > limit_ns ? kNever : end_ns_;
    }
    if (slot <= unlike || at.ready != old.ready) {
      unlike = std::max(unlike, LastWaiter(item));
    }
  }
  trial_end_ = -1;
  const double end = std::max({at.passed, at.out_free, at.in_free});
  return end > limit_ns ? kNever : end;
}

double SearchState::RunCoupledLanes() {
  sequence_.clear();
  for (int item = head_; item >= 0; item = next_[item]) {
    sequence_.push_back(items_[item]);
  }
  return lanes_.Run(sequence_, nullptr);
}

double SearchState::Makespan(double limit_ns) {
  const double compute = static_cast<double>(compute_ns_);
  if (model_.d2h_bytes_per_ns <= 0) {
    return compute > limit_ns ? kNever : compute;
  }
  double end = RunLanes(limit_ns);
  if (end < kNever && model_.bidirectional < 1) {
    end = RunCoupledLanes();
    trial_end_ = -1;
  }
  trial_done_ = end < kNever;
  trial_ns_ = end;
  return end > limit_ns ? kNever : end;
}

void SearchState::TakeTimes() {
  const double more_work =
      static_cast<double>(compute_ns_ - committed_.compute_ns);
  int item = times_stale_ ? head_ : next(ItemBefore(first_changed_));
  for (; item != trial_end_; item = next_[item]) {
    times_[item] = trial_[item];
    passed_ns_[item] = times_[item].passed;
  }
  if (more_work != 0) {
    for (; item >= 0; item = next_[item]) times_[item].work += more_work;
  }
  end_ns_ = trial_ns_;
  times_stale_ = false;
}

}  // namespace loadline::planner
