// See search_state.h. Tested in search_state_test.cc against FindLifetimes and
// FindTimes (simulate.h), which compute the same from scratch.
#include "planner/search/search_state.h"

#include <algorithm>

#include "planner/base/check.h"

namespace loadline::planner {

SearchState::SearchState(const SearchModel& model, const Schedule& schedule,
                         int64_t target_bytes)
    : model_(model),
      sequence_(model.tuning.sequence),
      accesses_(model),
      rules_(model),
      links_(model, sequence_, accesses_),
      lanes_(model, sequence_, links_) {
  memory_.SetTarget(static_cast<double>(target_bytes));
  Load(schedule);
}

void SearchState::Load(const Schedule& schedule) {
  const size_t count = schedule.items.size();
  sequence_.Reset(count);
  memory_.Reset(slot_count());
  accesses_.Clear();
  rules_.Reset(schedule.host_home);
  links_.Reset();
  lanes_.Reset();
  log_.clear();
  for (size_t p = 0; p < count; ++p) {
    const Item& item = schedule.items[p];
    const int id = NewItem(item);
    const int slot = sequence_.SpacedSlot(p);
    sequence_.Link(id, slot);
    for (const Use& use : accesses_.UsesOf(item)) {
      accesses_.Append(use.value, {slot, id, use.flags});
    }
    CountItem(item, 1);
    NoteWorkspace(item, slot, 1);
  }
  for (int v = 0; v < model_.representation_count(); ++v) {
    if (rules_.Leads(v)) ApplyRules(v, 1);
  }
  memory_.Settle();
  links_.Load();
  Settle();
}

// Makes the pending state of rules, links and lanes the committed one.
void SearchState::Settle() {
  lanes_.FinishTrial(valid());
  links_.Commit(lanes_.first_changed(), lanes_.last_changed());
  lanes_.Commit(valid());
  committed_ = rules_.sums();
}

Schedule SearchState::ToSchedule() const {
  Schedule schedule;
  schedule.host_home = rules_.host_homes();
  schedule.items.reserve(sequence_.size());
  for (int item = next(-1); item >= 0; item = next(item)) {
    schedule.items.push_back(sequence_.item(item));
  }
  return schedule;
}

void SearchState::SetTarget(int64_t target_bytes) {
  LOADLINE_CHECK(log_.empty());
  memory_.SetTarget(static_cast<double>(target_bytes));
}

void SearchState::Commit() {
  if (log_.empty()) return;
  memory_.Commit();
  log_.clear();
  Settle();
}

void SearchState::Respread() {
  LOADLINE_CHECK(log_.empty());
  Load(ToSchedule());
}

int SearchState::NewItem(const Item& item) {
  const int id = sequence_.Create(item);
  if (id >= room_) {
    room_ = 2 * (id + 1);
    links_.Grow(room_);
    lanes_.Grow(room_);
  }
  return id;
}

void SearchState::NoteWorkspace(const Item& item, int slot, int sign) {
  if (item.kind != ItemKind::kRun) return;
  const int64_t bytes = sign * model_.workspace_bytes[item.id];
  if (bytes == 0) return;
  memory_.Note(slot, slot + 1, static_cast<double>(bytes));
}

void SearchState::CountItem(const Item& item, int sign) {
  rules_.CountRun(item, sign);
  links_.CountCopy(item, sign);
  lanes_.CountItem(item, sign);
}

void SearchState::ApplyRules(int value, int sign) {
  rules_.Apply(value, accesses_, sign, slot_count(), memory_);
}

template <typename Change>
void SearchState::ChangeAccesses(const Item& what, int slot,
                                 const Change& change) {
  for (const Use& use : accesses_.UsesOf(what)) {
    const auto before = PlainExtent(use.value);
    const size_t first = memory_.Mark();
    if (!before) ApplyRules(use.value, -1);
    size_t second = memory_.Mark();
    change(use);
    const auto after = PlainExtent(use.value);
    if (before && after) {
      rules_.NoteChange(use.value, *before, *after, memory_);
    } else {
      if (before) {
        rules_.Note(use.value, *before, -1, memory_);
        second = memory_.Mark();
      }
      if (after) {
        rules_.Note(use.value, *after, 1, memory_);
      } else {
        ApplyRules(use.value, 1);
      }
      memory_.Cancel(first, second);
    }
    const int waiter = links_.LastWaiter(use, slot);
    if (waiter >= 0) lanes_.Change(slot_count(), waiter);
    links_.MarkReaders(use);
  }
}

int SearchState::Insert(ItemKind kind, int id, int slot) {
  lanes_.Change(slot, slot);
  const Item what{kind, id};
  const int item = NewItem(what);
  sequence_.Link(item, slot);
  links_.Mark(item);
  lanes_.Insert(item, previous(item));
  ChangeAccesses(what, slot, [&](const Use& use) {
    accesses_.Add(use.value, {slot, item, use.flags});
  });
  NoteWorkspace(what, slot, 1);
  CountItem(what, 1);
  log_.push_back({Op::kInsert, item, slot, what});
  return item;
}

void SearchState::Remove(int item) {
  const Item what = sequence_.item(item);
  const int slot = slot_of(item);
  lanes_.Change(slot, slot);
  sequence_.Unlink(item);
  ChangeAccesses(what, slot,
                 [&](const Use& use) { accesses_.Drop(use.value, item); });
  NoteWorkspace(what, slot, -1);
  CountItem(what, -1);
  sequence_.Free(item);
  log_.push_back({Op::kRemove, item, slot, what});
}

void SearchState::Move(int item, int slot) {
  const Item what = sequence_.item(item);
  const int old = slot_of(item);
  lanes_.Change(std::min(slot, old), std::max(slot, old));
  sequence_.Unlink(item);
  sequence_.Link(item, slot);
  links_.Mark(item);
  ChangeAccesses(what, std::max(slot, old), [&](const Use& use) {
    accesses_.Move(use.value, item, slot);
  });
  NoteWorkspace(what, old, -1);
  NoteWorkspace(what, slot, 1);
  log_.push_back({Op::kMove, item, old, what});
}

void SearchState::SetHome(int chain, bool host) {
  lanes_.Change(slot_count(), -1);
  log_.push_back({Op::kHome, chain, host_home(chain), {}});
  const auto apply = [&](int sign) {
    for (int v : model_.chains[chain].versions) {
      if (rules_.Leads(v)) ApplyRules(v, sign);
    }
  };
  apply(-1);
  rules_.SetHome(chain, host);
  apply(1);
}

int SearchState::GapBefore(int slot) {
  const int gap = sequence_.GapBefore(slot);
  if (gap >= 0) return gap;
  const int empty = sequence_.NearestEmpty(slot);
  if (empty < 0) return -1;
  if (empty < slot) {
    for (int s = empty; s < slot - 1; ++s) Move(item_at(s + 1), s);
    return slot - 1;
  }
  for (int s = empty; s > slot; --s) Move(item_at(s - 1), s);
  return slot;
}

void SearchState::Reverse(const Edit& edit) {
  if (edit.op == Op::kInsert) Remove(edit.item);
  if (edit.op == Op::kMove) Move(edit.item, edit.slot);
  if (edit.op == Op::kHome) SetHome(edit.item, edit.slot != 0);
  if (edit.op == Op::kRemove) {
    // Ids are reused last in, first out, so the same one comes back.
    const int item = Insert(edit.what.kind, edit.what.id, edit.slot);
    LOADLINE_CHECK(item == edit.item);
  }
}

void SearchState::Restore(const Edit& edit) {
  if (edit.op == Op::kHome) {
    rules_.SetHome(edit.item, edit.slot != 0);
    return;
  }
  if (edit.op == Op::kMove) {
    sequence_.Unlink(edit.item);
    sequence_.Link(edit.item, edit.slot);
    for (const Use& use : accesses_.UsesOf(edit.what)) {
      accesses_.Move(use.value, edit.item, edit.slot);
    }
    return;
  }
  if (edit.op == Op::kInsert) {
    sequence_.Unlink(edit.item);
    for (const Use& use : accesses_.UsesOf(edit.what)) {
      accesses_.Drop(use.value, edit.item);
    }
    rules_.CountRun(edit.what, -1);
    links_.CountCopy(edit.what, -1);
    sequence_.Free(edit.item);
    return;
  }
  rules_.CountRun(edit.what, 1);
  links_.CountCopy(edit.what, 1);
  sequence_.Unfree(edit.item, edit.what);
  lanes_.Reinsert(edit.item);
  sequence_.Link(edit.item, edit.slot);
  for (const Use& use : accesses_.UsesOf(edit.what)) {
    accesses_.Add(use.value, {edit.slot, edit.item, use.flags});
  }
}

void SearchState::Undo(size_t mark) {
  if (mark > 0) {
    while (log_.size() > mark) {
      const Edit edit = log_.back();
      Reverse(edit);
      log_.pop_back();  // the reverse edit's own entry
      log_.pop_back();
    }
    return;
  }
  while (!log_.empty()) {
    const Edit edit = log_.back();
    log_.pop_back();
    Restore(edit);
  }
  rules_.Restore(committed_);
  memory_.Drop();
  links_.Undo();
  lanes_.Undo();
}

bool SearchState::Spare(int item) const {
  const Item& what = sequence_.item(item);
  if (what.kind != ItemKind::kRun) return what.kind == ItemKind::kIn;
  const Job& job = model_.jobs[what.id];
  return job.node >= 0 ? rules_.run_count(job.node) > 1 : job.decodes;
}

int SearchState::Overwriter(int value) const {
  if (model_.Overwriter(value) < 0) return -1;
  const std::vector<Access>& last =
      accesses(model_.chains[model_.chain_of[value]].versions.back());
  return last.empty() || !last.front().makes() ? -1 : last.front().item;
}

bool SearchState::OnHost(int value, int slot) const {
  if (rules_.StartsOnHost(value)) return true;
  const int out = OutItem(value);
  return out >= 0 && slot_of(out) < slot;
}

}  // namespace loadline::planner
