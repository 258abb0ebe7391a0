// See incremental_lanes.h: totals, commit, undo, and the pass over independent
// lanes. The pass ends once what a lane still has to do leads past the limit: a
// lane needs at least its idle time so far and the time of all its work. Tested
// in incremental_lanes_test.cc.
#include "planner/search/incremental_lanes.h"

#include "planner/base/never_ns.h"

namespace loadline::planner {

IncrementalLanes::IncrementalLanes(const SearchModel& model,
                                   const ItemSequence& sequence,
                                   const WaitLinks& links)
    : model_(model), sequence_(sequence), links_(links) {}

void IncrementalLanes::Reset() {
  totals_ = {};
  first_changed_ = 0;
  last_changed_ = -1;
  trial_done_ = false;
  stale_ = true;
}

void IncrementalLanes::Grow(int id_count) {
  times_.resize(id_count);
  trial_.resize(id_count);
  passed_ns_.resize(id_count);
  if (model_.bidirectional < 1) {
    lanes_.resize(id_count);
    trial_lanes_.resize(id_count);
  }
}

double IncrementalLanes::Makespan(double limit_ns) {
  const double compute = static_cast<double>(totals_.compute_ns);
  if (model_.d2h_bytes_per_ns <= 0) {
    return compute > limit_ns ? kNeverNs : compute;
  }
  const double switches_ns = model_.copy_overhead_ns * totals_.copy_count;
  const double lanes_ns = limit_ns - switches_ns;
  const double end = model_.bidirectional < 1 ? RunCoupled(lanes_ns)
                                              : RunIndependent(lanes_ns);
  trial_done_ = end < kNeverNs;
  trial_ns_ = end;
  return end > lanes_ns ? kNeverNs : end + switches_ns;
}

void IncrementalLanes::FinishTrial(bool valid) {
  if (valid && model_.d2h_bytes_per_ns > 0 && !trial_done_) Makespan(kNeverNs);
}

void IncrementalLanes::Commit(bool valid) {
  if (valid && model_.d2h_bytes_per_ns > 0) {
    int item = trial_begin_;
    for (; item != trial_end_; item = sequence_.after(item)) {
      times_[item] = trial_[item];
      if (!lanes_.empty()) lanes_[item] = trial_lanes_[item];
      passed_ns_[item] = times_[item].passed;
    }
    // The rest passes when it did, so lanes with more to do were less idle.
    const Totals& old = committed_;
    const double compute =
        static_cast<double>(totals_.compute_ns - old.compute_ns);
    const double out = totals_.out_ns - old.out_ns;
    const double in = totals_.in_ns - old.in_ns;
    if (item >= 0 && (compute != 0 || out != 0 || in != 0)) {
      for (; item >= 0; item = sequence_.after(item)) {
        times_[item].stall -= compute;
        times_[item].out_idle -= out;
        times_[item].in_idle -= in;
      }
    }
    end_ns_ = trial_ns_;
    stale_ = false;
  } else {
    stale_ = true;
  }
  committed_ = totals_;
  Undo();
}

void IncrementalLanes::Undo() {
  totals_ = committed_;
  trial_done_ = false;
  first_changed_ = sequence_.slot_count();
  last_changed_ = -1;
}

// When what `maker` makes is there.
inline double IncrementalLanes::ReadyAt(int maker) const {
  if (maker < 0) return 0;
  const bool before = !stale_ && sequence_.slot_of(maker) < first_changed_;
  const ItemTimes& at = before ? times_[maker] : trial_[maker];
  return sequence_.item(maker).kind == ItemKind::kIn ? at.in_free : at.passed;
}

double IncrementalLanes::RunIndependent(double limit_ns) {
  const ItemSequence& sequence = sequence_;
  const WaitLinks& links = links_;
  int item = sequence.next(-1);
  ItemTimes at;
  if (!stale_) {
    const int before = sequence.ItemBefore(first_changed_);
    if (before >= 0) at = times_[before];
    item = sequence.next(before);
  }
  if (TooLate(at, limit_ns)) return kNeverNs;
  trial_begin_ = item;
  // Beyond this slot nothing has changed if the lanes' state has not.
  int unlike = last_changed_;
  for (; item >= 0; item = sequence.after(item)) {
    const Item what = sequence.item(item);
    const int slot = sequence.slot_of(item);
    if (what.kind == ItemKind::kRun) {
      const int copy = links.SourceOf(item);
      if (copy >= 0) {
        Stall(ReadyAt(copy), at);
        if (TooLate(at, limit_ns)) return kNeverNs;
      }
      at.passed += static_cast<double>(model_.node_ns[what.id]);
    } else if (what.kind == ItemKind::kOut) {
      const double ready = model_.copies_exclude_compute
                               ? at.passed
                               : ReadyAt(links.SourceOf(item));
      if (ready > at.out_free) {
        at.out_idle += ready - at.out_free;
        at.out_free = ready;
      }
      at.out_free += model_.out_ns[what.id];
      Stall(at.out_free, at);
      if (TooLate(at, limit_ns)) return kNeverNs;
    } else {
      if (at.passed > at.in_free) {
        at.in_idle += at.passed - at.in_free;
        at.in_free = at.passed;
      }
      at.in_free += model_.in_ns[what.id];
      if (model_.copies_exclude_compute) Stall(at.in_free, at);
      if (TooLate(at, limit_ns)) return kNeverNs;
    }
    trial_[item] = at;
    const ItemTimes& old = times_[item];
    if (slot > unlike && at.passed == old.passed &&
        at.out_free == old.out_free && at.in_free == old.in_free && !stale_) {
      trial_end_ = sequence.after(item);
      return end_ns_ > limit_ns ? kNeverNs : end_ns_;
    }
    const bool in = what.kind == ItemKind::kIn;
    if (slot <= last_changed_ ||
        (in ? at.in_free != old.in_free : at.passed != old.passed)) {
      unlike = std::max(unlike, links.ReachOf(item));
    }
  }
  trial_end_ = -1;
  const double end = std::max({at.passed, at.out_free, at.in_free});
  return end > limit_ns ? kNeverNs : end;
}

}  // namespace loadline::planner
