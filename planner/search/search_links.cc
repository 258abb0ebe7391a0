// What an item of a SearchState waits for, found once per committed state: a
// run for the last copy back among what it reads (the lane brings them in
// order), a copy out for the run that made its value. And the other way round,
// how far its own time can matter. Edits only mark the items whose links they
// may change; those are found anew whenever asked for, and kept on commit.
// Tested in search_state_test.cc.
#include <algorithm>

#include "planner/search/search_state.h"

namespace loadline::planner {

void SearchState::MarkLinks(int item) {
  if (links_[item].touched == edits_) return;
  links_[item].touched = edits_;
  touched_.push_back(item);
}

// Everything that accesses the value, if copies of it are about.
void SearchState::MarkReaders(const Use& use) {
  if (in_count_[use.value] == 0 && out_count_[use.value] == 0 &&
      (use.flags & (kFromHost | kToHost)) == 0) {
    return;
  }
  for (const Access& touch : accesses_[use.value]) MarkLinks(touch.item);
}

// The item that made the instance of `value` that a touch at `slot` reads; -1:
// it was there at the start.
int SearchState::MakerOf(int value, int slot) const {
  int maker = -1;
  for (const Access& touch : accesses_[value]) {
    if (touch.slot >= slot) break;
    if (touch.makes()) maker = touch.item;
  }
  return maker;
}

int SearchState::FindSource(int item) const {
  const Item& what = items_[item];
  const int slot = slot_of_[item];
  if (what.kind == ItemKind::kIn) return -1;
  if (what.kind == ItemKind::kOut) return MakerOf(what.id, slot);
  int last = -1;
  const Use* use = uses_.data() + use_begin_[what.id];
  const Use* end = uses_.data() + use_begin_[what.id + 1];
  for (; use != end && (use->flags & kMakes) == 0; ++use) {
    if (in_count_[use->value] == 0) continue;
    const int maker = MakerOf(use->value, slot);
    if (maker < 0 || items_[maker].kind != ItemKind::kIn) continue;
    if (last < 0 || slot_of_[last] < slot_of_[maker]) last = maker;
  }
  return last;
}

// Compute waits for a copy back at its first read only, and for what it has run
// itself never.
int SearchState::FindReach(int item) const {
  const Item& what = items_[item];
  if (what.kind == ItemKind::kOut) return -1;
  if (what.kind == ItemKind::kIn) {
    for (const Access& touch : accesses_[what.id]) {
      if (touch.slot > slot_of_[item]) return touch.item;
    }
    return -1;
  }
  int last = -1;
  const Use* use = uses_.data() + use_begin_[what.id + 1];
  const Use* begin = uses_.data() + use_begin_[what.id];
  while (use != begin && ((--use)->flags & kMakes) != 0) {
    if (out_count_[use->value] == 0) continue;
    for (const Access& touch : accesses_[use->value]) {
      if ((touch.flags & kToHost) == 0) continue;
      if (last < 0 || slot_of_[last] < touch.slot) last = touch.item;
    }
  }
  return last;
}

// Of the whole sequence.
void SearchState::LoadLinks() {
  ++edits_;
  touched_.clear();
  int next_out = -1;
  for (int item = tail_; item >= 0; item = previous_[item]) {
    links_[item] = {FindSource(item), FindReach(item), next_out, 0};
    if (items_[item].kind == ItemKind::kOut) next_out = item;
  }
}

// What the committed edits have changed.
void SearchState::TakeLinks() {
  for (int item : touched_) {
    if (slot_of_[item] < 0) continue;
    links_[item].source = FindSource(item);
    links_[item].reach = FindReach(item);
  }
  touched_.clear();
  ++edits_;
  if (model_.bidirectional < 1 && last_changed_ >= 0) TakeNextOuts();
}

// From the last changed item back to the Out before the first.
void SearchState::TakeNextOuts() {
  int item = ItemBefore(last_changed_ + 1);
  const int after = next(item);
  int next_out = -1;
  if (after >= 0) {
    next_out =
        items_[after].kind == ItemKind::kOut ? after : links_[after].next_out;
  }
  for (; item >= 0; item = previous_[item]) {
    links_[item].next_out = next_out;
    if (items_[item].kind != ItemKind::kOut) continue;
    next_out = item;
    if (slot_of_[item] < first_changed_) break;
  }
}

}  // namespace loadline::planner
