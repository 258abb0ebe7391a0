// The slots of a SearchState: items in an array with gaps, linked in order, and
// how room is made where there is none. Tested in search_state_test.cc.
#include "planner/base/check.h"
#include "planner/search/search_state.h"

namespace loadline::planner {
namespace {

constexpr int kSlideLimit = 24;

}  // namespace

void SearchState::Link(int item, int slot) {
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

void SearchState::Unlink(int item) {
  slots_[slot_of_[item]] = -1;
  slot_of_[item] = -1;
  const int before = previous_[item], after = next_[item];
  (before < 0 ? head_ : next_[before]) = after;
  (after < 0 ? tail_ : previous_[after]) = before;
}

int SearchState::NewItem(Item item) {
  if (free_items_.empty()) {
    items_.push_back(item);
    slot_of_.push_back(-1);
    next_.push_back(-1);
    previous_.push_back(-1);
    if (times_.size() < items_.size()) {
      times_.resize(2 * items_.size());
      trial_.resize(times_.size());
      passed_ns_.resize(times_.size());
      links_.resize(times_.size());
      if (model_.bidirectional < 1) {
        lanes_.resize(times_.size());
        trial_lanes_.resize(times_.size());
      }
    }
    return static_cast<int>(items_.size()) - 1;
  }
  const int id = free_items_.back();
  free_items_.pop_back();
  items_[id] = item;
  return id;
}

int SearchState::GapBefore(int slot) {
  if (slot > 0 && slots_[slot - 1] < 0) {
    // The middle of the gap leaves room on both sides.
    int lower = slot - 1;
    while (lower > 0 && slots_[lower - 1] < 0 && slot - lower < 8) --lower;
    return (lower + slot - 1 + 1) / 2;
  }
  return SlideFor(slot);
}

int SearchState::SlideFor(int slot) {
  const int count = slot_count();
  int left = slot - 1, right = slot;
  for (int step = 0; step < kSlideLimit; ++step, --left, ++right) {
    if (left >= 0 && slots_[left] < 0) {
      for (int s = left; s < slot - 1; ++s) Move(slots_[s + 1], s);
      return slot - 1;
    }
    if (right < count && slots_[right] < 0) {
      for (int s = right; s > slot; --s) Move(slots_[s - 1], s);
      return slot;
    }
  }
  return -1;
}

void SearchState::Respread() {
  LOADLINE_CHECK(log_.empty());
  Load(ToSchedule());
}

}  // namespace loadline::planner
