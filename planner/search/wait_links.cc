// See wait_links.h. Tested in wait_links_test.cc.
#include "planner/search/wait_links.h"

#include <algorithm>
#include <span>

namespace loadline::planner {

WaitLinks::WaitLinks(const SearchModel& model, const ItemSequence& sequence,
                     const AccessTable& accesses)
    : model_(model), sequence_(sequence), accesses_(accesses) {}

void WaitLinks::Reset() {
  copy_count_ = 0;
  in_count_.assign(model_.representation_count(), 0);
  out_count_.assign(model_.representation_count(), 0);
}

void WaitLinks::MarkAll(int value) {
  for (const Access& access : accesses_.of(value)) Mark(access.item);
}

// The next read may wait for something else, and so may a copy out. Reads after
// it never wait: compute has then passed one of the same instance.
int WaitLinks::FindLastWaiter(const Use& use, int slot) const {
  int last = -1;
  bool next = true;
  for (const Access& access : accesses_.of(use.value)) {
    if (access.slot <= slot) continue;
    if (next || (access.flags & kToHost) != 0) last = access.slot;
    next = false;
  }
  // A value that is only needed at the end is waited for there.
  if (next && (use.flags & kFromHost) != 0 && model_.bidirectional < 1) {
    return sequence_.slot_count() - 1;
  }
  return last;
}

int WaitLinks::FindSource(int item) const {
  if (copy_count_ == 0) return -1;
  const Item& what = sequence_.item(item);
  const int slot = sequence_.slot_of(item);
  if (what.kind == ItemKind::kIn) return -1;
  if (what.kind == ItemKind::kOut) return accesses_.MakerBefore(what.id, slot);
  int last = -1;
  for (const Use& use : accesses_.UsesOf(what)) {
    if (use.makes()) break;  // all reads come first
    if (in_count_[use.value] == 0) continue;
    const int maker = accesses_.MakerBefore(use.value, slot);
    if (maker < 0 || sequence_.item(maker).kind != ItemKind::kIn) continue;
    if (last < 0 || sequence_.slot_of(last) < sequence_.slot_of(maker)) {
      last = maker;
    }
  }
  return last;
}

// Compute waits for a copy back at its first read only, and for what it has run
// itself never.
int WaitLinks::FindReach(int item) const {
  if (copy_count_ == 0) return -1;
  const Item& what = sequence_.item(item);
  if (what.kind == ItemKind::kOut) return -1;
  if (what.kind == ItemKind::kIn) {
    for (const Access& access : accesses_.of(what.id)) {
      if (access.slot > sequence_.slot_of(item)) return access.item;
    }
    return -1;
  }
  int last = -1;
  const std::span<const Use> uses = accesses_.UsesOf(what);
  for (auto use = uses.rbegin(); use != uses.rend() && use->makes(); ++use) {
    if (out_count_[use->value] == 0) continue;
    for (const Access& access : accesses_.of(use->value)) {
      if ((access.flags & kToHost) == 0) continue;
      if (last < 0 || sequence_.slot_of(last) < access.slot) {
        last = access.item;
      }
    }
  }
  return last;
}

void WaitLinks::Load() {
  ++transaction_;
  marked_.clear();
  int next_out = -1;
  for (int item = sequence_.previous(-1); item >= 0;
       item = sequence_.before(item)) {
    links_[item] = {FindSource(item), FindReach(item), next_out, 0};
    if (sequence_.item(item).kind == ItemKind::kOut) next_out = item;
  }
}

void WaitLinks::Commit(int first_slot, int last_slot) {
  for (int item : marked_) {
    if (sequence_.slot_of(item) < 0) continue;
    links_[item].source = FindSource(item);
    links_[item].reach = FindReach(item);
  }
  Undo();
  if (model_.bidirectional < 1 && last_slot >= 0) {
    CommitNextOuts(first_slot, last_slot);
  }
}

void WaitLinks::Undo() {
  marked_.clear();
  ++transaction_;
}

// From the last changed item back to the Out before the first.
void WaitLinks::CommitNextOuts(int first_slot, int last_slot) {
  int item = sequence_.ItemBefore(last_slot + 1);
  const int after = sequence_.next(item);
  int next_out = -1;
  if (after >= 0) {
    next_out = sequence_.item(after).kind == ItemKind::kOut
                   ? after
                   : links_[after].next_out;
  }
  for (; item >= 0; item = sequence_.before(item)) {
    links_[item].next_out = next_out;
    if (sequence_.item(item).kind != ItemKind::kOut) continue;
    next_out = item;
    if (sequence_.slot_of(item) < first_slot) break;
  }
}

}  // namespace loadline::planner
