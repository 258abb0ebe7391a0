// See item_sequence.h. Tested in item_sequence_test.cc.
#include "planner/search/item_sequence.h"

#include <algorithm>

#include "planner/base/check.h"

namespace loadline::planner {

void ItemSequence::Reset(size_t item_count) {
  slots_.assign((item_count + 1) * tuning_.slots_per_item, -1);
  head_ = tail_ = -1;
  items_.clear();
  free_.clear();
  for (std::vector<int>* list : {&slot_of_, &next_, &previous_}) {
    list->clear();
    list->reserve(2 * item_count);
  }
  items_.reserve(2 * item_count);
}

int ItemSequence::Create(const Item& item) {
  if (free_.empty()) {
    items_.push_back(item);
    slot_of_.push_back(-1);
    next_.push_back(-1);
    previous_.push_back(-1);
    return id_count() - 1;
  }
  const int id = free_.back();
  free_.pop_back();
  items_[id] = item;
  return id;
}

void ItemSequence::Unfree(int item, const Item& what) {
  LOADLINE_CHECK(!free_.empty() && free_.back() == item);
  free_.pop_back();
  items_[item] = what;
}

void ItemSequence::Link(int item, int slot) {
  LOADLINE_CHECK(slots_[slot] < 0);
  slots_[slot] = item;
  slot_of_[item] = slot;
  int before = -1;
  if (tail_ < 0 || slot_of_[tail_] < slot) {
    before = tail_;
  } else {
    int s = slot - 1;
    while (s >= 0 && slots_[s] < 0) --s;
    before = s < 0 ? -1 : slots_[s];
  }
  const int after = before < 0 ? head_ : next_[before];
  previous_[item] = before;
  next_[item] = after;
  (before < 0 ? head_ : next_[before]) = item;
  (after < 0 ? tail_ : previous_[after]) = item;
}

void ItemSequence::Unlink(int item) {
  slots_[slot_of_[item]] = -1;
  slot_of_[item] = -1;
  const int before = previous_[item], after = next_[item];
  (before < 0 ? head_ : next_[before]) = after;
  (after < 0 ? tail_ : previous_[after]) = before;
}

int ItemSequence::ItemBefore(int slot) const {
  for (int s = std::min(slot, slot_count()) - 1; s >= 0; --s) {
    if (slots_[s] >= 0) return slots_[s];
  }
  return -1;
}

int ItemSequence::GapBefore(int slot) const {
  if (slot <= 0 || slots_[slot - 1] >= 0) return -1;
  // The middle leaves room on both sides for later insertions.
  int lower = slot - 1;
  while (lower > 0 && slots_[lower - 1] < 0 &&
         slot - lower < tuning_.gap_limit) {
    --lower;
  }
  return (lower + slot) / 2;
}

int ItemSequence::NearestEmpty(int slot) const {
  int left = slot - 1, right = slot;
  for (int step = 0; step < tuning_.slide_limit; ++step, --left, ++right) {
    if (left >= 0 && slots_[left] < 0) return left;
    if (right < slot_count() && slots_[right] < 0) return right;
  }
  return -1;
}

}  // namespace loadline::planner
