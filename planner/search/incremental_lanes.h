// Times of the three lanes (compute, copies out, copies in) of a sequence under
// edits: what LaneSimulator (simulate.h) computes from scratch.
//
// The committed state keeps, for each item, the state of the lanes when compute
// passed the item. After an edit a *trial* pass starts from the item before the
// first change, and ends where nothing differs from the committed times any
// more, or as soon as the step is surely longer than a limit. Commit stores the
// trial's times, Undo drops them.
//
// Independent lanes need one pass in sequence order (incremental_lanes.cc).
// Coupled lanes slow each other down while both move bytes, which takes an
// event simulation (coupled_lanes.cc).
#ifndef LOADLINE_PLANNER_SEARCH_INCREMENTAL_LANES_H_
#define LOADLINE_PLANNER_SEARCH_INCREMENTAL_LANES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/search/item_sequence.h"
#include "planner/search/wait_links.h"

namespace loadline::planner {

class IncrementalLanes {
 public:
  // All three must outlive it.
  IncrementalLanes(const SearchModel& model, const ItemSequence& sequence,
                   const WaitLinks& links);

  // The sequence is new and holds no items yet.
  void Reset();
  // Room for items with these ids.
  void Grow(int id_count);

  // Adds (sign 1) or removes (-1) the item's own time.
  void CountItem(const Item& item, int sign) {
    if (item.kind == ItemKind::kRun) {
      totals_.compute_ns += sign * model_.node_ns[item.id];
      return;
    }
    totals_.copy_count += sign;
    if (item.kind == ItemKind::kIn) {
      totals_.in_ns += sign * model_.in_ns[item.id];
    } else {
      totals_.out_ns += sign * model_.out_ns[item.id];
    }
  }
  // Slots in [lower, upper] have changed, or what the items there wait for.
  void Change(int lower, int upper) {
    trial_done_ = false;
    first_changed_ = std::min(first_changed_, lower);
    last_changed_ = std::max(last_changed_, upper);
  }
  int first_changed() const { return first_changed_; }
  int last_changed() const { return last_changed_; }

  // With the pending edits. End of the last lane plus
  // SearchModel::copy_overhead_ns for each copy, or infinity if that is surely
  // above `limit_ns`. The schedule must be valid.
  double Makespan(double limit_ns);
  int64_t compute_ns() const { return totals_.compute_ns; }
  int copy_count() const { return totals_.copy_count; }

  // Commits the pending edits in two steps, around WaitLinks::Commit: the trial
  // reads the old links, and the times belong to the new ones. An invalid
  // schedule has no times; the next valid one is followed from the start.
  void FinishTrial(bool valid);
  void Commit(bool valid);
  void Undo();

  // When compute has passed an item of the committed state.
  double passed_ns(int item) const { return passed_ns_[item]; }
  // Until a commit, an inserted item passes with the item before it (-1: none).
  void Insert(int item, int before) {
    passed_ns_[item] = before >= 0 ? passed_ns_[before] : 0.0;
  }
  // The item is back where it was in the committed state.
  void Reinsert(int item) { passed_ns_[item] = times_[item].passed; }

 private:
  struct Totals {
    int64_t compute_ns = 0;
    double out_ns = 0, in_ns = 0;  // of all copies
    int copy_count = 0;
  };
  // The lanes when compute has passed an item: that time, when each copy lane
  // is free, how long compute has waited and each lane has been idle so far.
  struct ItemTimes {
    double passed = 0, out_free = 0, in_free = 0;
    double stall = 0, out_idle = 0, in_idle = 0;
  };
  // One of two coupled copy lanes.
  struct CopyLane {
    int copy = -1;  // the item copied now, or next; -1: none is known
    bool busy = false;
    double ready_ns = 0;       // when it may start
    double moves_from_ns = 0;  // end of the latency
    double left_bytes = 0;
    int ahead = -1;  // the copy that ended last, if compute is not there yet
    bool Moving(double now) const { return busy && now >= moves_from_ns; }
  };
  // How far both have been followed: at most to when compute passed the item.
  struct LanePair {
    double now_ns = 0;
    CopyLane out, in;
  };
  struct CoupledPass;
  static constexpr double kRounding = 0.01;  // of the sums of times, at most

  // Compute waits until `ready`.
  static void Stall(double ready, ItemTimes& at) {
    if (ready <= at.passed) return;
    at.stall += ready - at.passed;
    at.passed = ready;
  }
  bool TooLate(const ItemTimes& at, double limit_ns) const {
    const double most = limit_ns + kRounding;
    return at.stall + static_cast<double>(totals_.compute_ns) > most ||
           at.out_idle + totals_.out_ns > most ||
           at.in_idle + totals_.in_ns > most;
  }
  inline double ReadyAt(int maker) const;
  double RunIndependent(double limit_ns);

  // coupled_lanes.cc
  double RunCoupled(double limit_ns);
  int RestartCoupled(ItemTimes& at, LanePair& lanes) const;
  double PassedAt(int item, int restart_slot) const {
    return sequence_.slot_of(item) <= restart_slot ? times_[item].passed
                                                   : trial_[item].passed;
  }
  int NextOut(int item) const;
  int NextIn(int item, int end) const;
  bool SameLanes(const LanePair& a, const LanePair& b) const;
  void StartOut(CoupledPass& pass, int copy) const;
  void StartIn(CoupledPass& pass, int copy) const;
  bool StepLanes(CoupledPass& pass) const;

  const SearchModel& model_;
  const ItemSequence& sequence_;
  const WaitLinks& links_;
  Totals totals_, committed_;
  int first_changed_ = 0, last_changed_ = -1;  // slots
  std::vector<ItemTimes> times_, trial_;       // by item
  std::vector<double> passed_ns_;              // by item, see passed_ns()
  bool stale_ = true;  // times_ are not the committed state's
  bool trial_done_ = false;
  int trial_begin_ = -1;
  int trial_end_ = -1;  // from this item on the times are the committed ones
  double trial_ns_ = 0, end_ns_ = 0;  // makespans
  // By item, only where lanes are coupled.
  std::vector<LanePair> lanes_, trial_lanes_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_INCREMENTAL_LANES_H_
