// The sequence of items of a schedule under search: a linked list whose items
// also sit in the slots of an array with gaps, in the same order.
//
// A slot is a position in time: bytes are counted by slot, and comparing two
// slots tells which item comes first. Gaps let an item be inserted or moved
// without changing the slot of any other. Ids of removed items are reused, last
// in first out, so that undoing a removal gives the item its old id back.
//
//   slots   .  a  .  .  b  c  .  .  d  .     (. is empty)
//   order      a -> b -> c -> d
#ifndef LOADLINE_PLANNER_SEARCH_ITEM_SEQUENCE_H_
#define LOADLINE_PLANNER_SEARCH_ITEM_SEQUENCE_H_

#include <cstddef>
#include <vector>

#include "planner/schedule/schedule.h"
#include "planner/schedule/search_tuning.h"

namespace loadline::planner {

class ItemSequence {
 public:
  explicit ItemSequence(const SearchTuning::Sequence& tuning)
      : tuning_(tuning) {}

  // Empty, with slots for `item_count` items and gaps between them.
  void Reset(size_t item_count);
  // The slot at which the `position`-th item of an evenly spaced sequence sits.
  int SpacedSlot(size_t position) const {
    return static_cast<int>(position) * tuning_.slots_per_item + 1;
  }

  // A new id for an item that is not in the sequence yet.
  int Create(const Item& item);
  // Makes the id available again. The item must not be in the sequence.
  void Free(int item) { free_.push_back(item); }
  // Reverts Free. Only for the id that was freed last.
  void Unfree(int item, const Item& what);
  // Puts a created item into an empty slot; takes it out again.
  void Link(int item, int slot);
  void Unlink(int item);

  const Item& item(int item) const { return items_[item]; }
  int slot_count() const { return static_cast<int>(slots_.size()); }
  int item_at(int slot) const { return slots_[slot]; }    // -1: empty
  int slot_of(int item) const { return slot_of_[item]; }  // -1: not in it
  bool alive(int item) const {
    return item < static_cast<int>(items_.size()) && slot_of_[item] >= 0;
  }
  // Neighbours in the order; -1 is before the first and after the last.
  int next(int item) const { return item < 0 ? head_ : next_[item]; }
  int previous(int item) const { return item < 0 ? tail_ : previous_[item]; }
  // The same for an item of the sequence only: for the inner loops.
  int after(int item) const { return next_[item]; }
  int before(int item) const { return previous_[item]; }
  // The last item before a slot; -1: none.
  int ItemBefore(int slot) const;
  // Ids lie in [0, id_count).
  int id_count() const { return static_cast<int>(items_.size()); }
  // Items in the sequence, if none is created and not linked.
  size_t size() const { return items_.size() - free_.size(); }

  // An empty slot between `slot` and the item before it, about in the middle of
  // the gap; -1: there is no gap. `slot` may be slot_count() for the end.
  int GapBefore(int slot) const;
  // The empty slot closest to the boundary before `slot`, within
  // `slide_limit`; of two as close the left one; -1: none.
  int NearestEmpty(int slot) const;

 private:
  const SearchTuning::Sequence& tuning_;
  std::vector<int> slots_;  // item by slot; -1: empty
  std::vector<Item> items_;
  std::vector<int> slot_of_;
  std::vector<int> next_, previous_;
  int head_ = -1, tail_ = -1;
  std::vector<int> free_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_ITEM_SEQUENCE_H_
