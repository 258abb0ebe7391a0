// A Schedule under search: edits as a transaction over an item sequence, the
// accesses of each value, the bytes over time and the times of the lanes.
//
// Any item can be inserted, removed or moved, and any chain can change its
// home. Such edits are *pending* until Commit or Undo. What a search asks after
// every edit (valid, excess_area, compute_ns, Makespan) includes the pending
// edits and follows incrementally; most candidates are rejected, so rejecting
// one must be cheap:
//
//   ItemSequence   slots, gaps, neighbours                 changed at once
//   AccessTable    who accesses which value                changed at once
//   LifetimeRules  lifetimes, broken rules, host bytes     sums, restored
//   SearchMemory   bytes by slot, excess area              noted, then written
//   WaitLinks      what each item waits for                marked, then found
//   IncrementalLanes      when compute passes each item           trial, then
//   stored
#ifndef LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_
#define LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/schedule/schedule.h"
#include "planner/search/access_table.h"
#include "planner/search/incremental_lanes.h"
#include "planner/search/item_sequence.h"
#include "planner/search/lifetime_rules.h"
#include "planner/search/search_memory.h"
#include "planner/search/wait_links.h"

namespace loadline::planner {

class SearchState {
 public:
  // The model must outlive the state.
  SearchState(const SearchModel& model, const Schedule& schedule,
              int64_t target_bytes);
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  Schedule ToSchedule() const;
  // Replaces everything, pending edits included.
  void Load(const Schedule& schedule);
  // No edit may be pending.
  void SetTarget(int64_t target_bytes);

  // Edits. The slot must be empty. Insert returns the item's id.
  int Insert(ItemKind kind, int id, int slot);
  void Remove(int item);
  void Move(int item, int slot);
  void SetHome(int chain, bool host);
  // An empty slot before `slot` with no item in between. Where there is none,
  // neighbours slide, which changes their slots: read slots again afterwards.
  // -1: no empty slot is near; Respread before the next try. `slot` may be
  // slot_count() for the end.
  int GapBefore(int slot);

  // The number of pending edits. Undo returns to an earlier Mark; Undo(0) to
  // the committed state.
  size_t Mark() const { return log_.size(); }
  void Undo(size_t mark);
  void Commit();
  // Spaces the items evenly again; ids change. No edit may be pending.
  void Respread();

  // With the pending edits:
  bool valid() const {
    return rules_.sums().broken == 0 &&
           rules_.sums().host_bytes <= model_.host_limit_bytes;
  }
  // Bytes over the target, summed over slots.
  double excess_area() { return memory_.excess_area(); }
  // Whether the pending edits lift a slot above so many bytes.
  bool Exceeds(double bytes) { return memory_.Exceeds(bytes); }
  double PeakBytes() const { return memory_.PeakBytes(); }
  // By how much the excess area falls if the value's bytes leave [lower,
  // upper).
  double FreedArea(int value, int lower, int upper) {
    return memory_.FreedArea(lower, upper,
                             static_cast<double>(model_.bytes[value]));
  }
  int64_t compute_ns() const { return lanes_.compute_ns(); }
  int copy_count() const { return lanes_.copy_count(); }
  // See IncrementalLanes::Makespan. Requires valid().
  double Makespan(double limit_ns = std::numeric_limits<double>::infinity()) {
    return lanes_.Makespan(limit_ns);
  }

  // Of the committed state: bytes at a slot, the slot with the most, and when
  // compute has passed an item (a pending one: see IncrementalLanes::Insert).
  double BytesAt(int slot) const { return memory_.at(slot); }
  int PeakSlot() { return memory_.PeakSlot(); }
  // Whether a slot of [lower, upper) is over the target.
  bool AnyOver(int lower, int upper) { return memory_.AnyOver(lower, upper); }
  double PassedNs(int item) const { return lanes_.passed_ns(item); }

  // The sequence and the accesses, with the pending edits.
  const SearchModel& model() const { return model_; }
  double target() const { return memory_.target(); }
  int slot_count() const { return sequence_.slot_count(); }
  int item_at(int slot) const { return sequence_.item_at(slot); }
  int slot_of(int item) const { return sequence_.slot_of(item); }
  int next(int item) const { return sequence_.next(item); }
  int previous(int item) const { return sequence_.previous(item); }
  bool alive(int item) const { return sequence_.alive(item); }
  const Item& item(int item) const { return sequence_.item(item); }
  const std::vector<Access>& accesses(int value) const {
    return accesses_.of(value);
  }
  int OutItem(int value) const { return accesses_.OutItem(value); }
  bool host_home(int chain) const { return rules_.host_home(chain); }
  // The run after which nothing may access the value (SearchModel::Overwriter);
  // -1: none.
  int Overwriter(int value) const;
  // Whether an In of the value may stand at `slot`: its bytes are on the host.
  bool OnHost(int value, int slot) const;
  // Whether the item makes an instance that existed before: a rerun, a decode,
  // a copy back.
  bool Spare(int item) const;

 private:
  enum class Op : uint8_t { kInsert, kRemove, kMove, kHome };
  struct Edit {
    Op op;
    int item;  // or the chain
    int slot;  // where it was; of a chain, whether it lived on the host
    Item what;
  };

  int NewItem(const Item& item);
  void NoteWorkspace(const Item& item, int slot, int sign);
  // Adds or removes what depends on the item alone, not on its slot.
  void CountItem(const Item& item, int sign);
  void ApplyRules(int value, int sign);
  std::optional<LifetimeRules::Extent> PlainExtent(int value) const {
    return rules_.PlainExtent(value, accesses_, slot_count());
  }
  // Makes `change` to the accesses of every value that `what` uses, and updates
  // what they imply. `slot` is the later of the old and the new slot.
  template <typename Change>
  void ChangeAccesses(const Item& what, int slot, const Change& change);
  void Settle();
  // Undo of one edit: with all sums, or without those that Undo(0) restores.
  void Reverse(const Edit& edit);
  void Restore(const Edit& edit);

  const SearchModel& model_;
  ItemSequence sequence_;
  AccessTable accesses_;
  LifetimeRules rules_;
  SearchMemory memory_;
  WaitLinks links_;
  IncrementalLanes lanes_;
  int room_ = 0;  // ids that links_ and lanes_ have room for
  LifetimeRules::Sums committed_;
  std::vector<Edit> log_;  // pending
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_SEARCH_STATE_H_
