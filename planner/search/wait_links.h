// What each item of a sequence waits for, and how far its own time can matter.
//
// A run waits for the last copy back (In) among those that bring its inputs:
// the lane brings them in order. An Out waits for the run that made its value.
// The other way round, the *reach* of an item is the last item for which it
// matters when the first was ready.
//
// Links belong to the committed state. Edits only mark the items whose links
// they may change; those are found again whenever they are read, and stored on
// Commit. Undo drops the marks.
#ifndef LOADLINE_PLANNER_SEARCH_WAIT_LINKS_H_
#define LOADLINE_PLANNER_SEARCH_WAIT_LINKS_H_

#include <cstdint>
#include <vector>

#include "planner/search/access_table.h"
#include "planner/search/item_sequence.h"

namespace loadline::planner {

class WaitLinks {
 public:
  // All three must outlive it.
  WaitLinks(const SearchModel& model, const ItemSequence& sequence,
            const AccessTable& accesses);

  // No copies.
  void Reset();
  // Room for items with these ids.
  void Grow(int id_count) { links_.resize(id_count); }
  // One more (sign 1) or one fewer (-1) copy of the item's value; nothing for a
  // run.
  void CountCopy(const Item& item, int sign) {
    if (item.kind == ItemKind::kRun) return;
    (item.kind == ItemKind::kIn ? in_count_ : out_count_)[item.id] += sign;
    copy_count_ += sign;
  }
  // Finds the links of the whole sequence.
  void Load();

  // The item's links may change.
  void Mark(int item) {
    if (links_[item].marked_in == transaction_) return;
    links_[item].marked_in = transaction_;
    marked_.push_back(item);
  }
  // So may those of everything that accesses the value, if it is copied.
  void MarkReaders(const Use& use) {
    if ((use.flags & (kFromHost | kToHost)) != 0 || Copied(use.value)) {
      MarkAll(use.value);
    }
  }
  // The last slot at which something may wait for another maker of the value
  // after the item with this use came to or left `slot`; -1: none.
  int LastWaiter(const Use& use, int slot) const {
    return use.makes() && Copied(use.value) ? FindLastWaiter(use, slot) : -1;
  }
  // Stores the links of the marked items. Items in [first_slot, last_slot] have
  // changed.
  void Commit(int first_slot, int last_slot);
  void Undo();

  // With the pending edits. -1: nothing.
  int SourceOf(int item) const {
    return links_[item].marked_in == transaction_ ? FindSource(item)
                                                  : links_[item].source;
  }
  // The slot of the item's reach; -1: its time matters to no other.
  int ReachOf(int item) const {
    const int reach = links_[item].marked_in == transaction_
                          ? FindReach(item)
                          : links_[item].reach;
    return reach < 0 ? -1 : sequence_.slot_of(reach);
  }
  // The next Out after the item in the committed state; -1: none. Kept only
  // where copy lanes slow each other down.
  int committed_next_out(int item) const { return links_[item].next_out; }

 private:
  struct Links {
    int source = -1;
    int reach = -1;  // an item
    int next_out = -1;
    uint64_t marked_in = 0;  // the transaction that marked the item
  };

  bool Copied(int value) const {
    return copy_count_ != 0 &&
           (in_count_[value] != 0 || out_count_[value] != 0);
  }
  void MarkAll(int value);
  int FindLastWaiter(const Use& use, int slot) const;
  int FindSource(int item) const;
  int FindReach(int item) const;
  void CommitNextOuts(int first_slot, int last_slot);

  const SearchModel& model_;
  const ItemSequence& sequence_;
  const AccessTable& accesses_;
  int copy_count_ = 0;                     // in the whole sequence
  std::vector<int> in_count_, out_count_;  // by value
  std::vector<Links> links_;               // by item
  uint64_t transaction_ = 1;
  std::vector<int> marked_;  // in this transaction
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_WAIT_LINKS_H_
