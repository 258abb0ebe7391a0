// The incremental form of simulate.cc; see search_state.h for the idea.
// Loading, edits and their undo here; the slots are in search_slots.cc,
// lifetimes in search_lifetimes.cc, bytes in search_memory.cc, what waits for
// what in search_links.cc, the lanes in search_times.cc and search_coupled.cc.
// Tested against FindLifetimes and FindTimes in
// search_state_test.cc.
#include "planner/search/search_state.h"

#include <algorithm>

#include "planner/base/check.h"

namespace loadline::planner {
namespace {

constexpr int kSlotsPerItem = 3;

}  // namespace

SearchState::SearchState(const SearchModel& model, const Schedule& schedule,
                         int64_t target_bytes)
    : model_(model), host_limit_(model.host_limit_bytes) {
  FindUses();
  memory_.SetTarget(static_cast<double>(target_bytes));
  Load(schedule);
}

void SearchState::FindUses() {
  for (int job = 0; job < model_.job_count(); ++job) {
    use_begin_.push_back(static_cast<int>(uses_.size()));
    const int node = model_.jobs[job].node;
    for (int v : model_.reads[job]) {
      uint8_t flags = 0;
      if (node >= 0 && model_.Updater(v) == node) flags |= kUpdates;
      if (model_.Overwrites(job, v)) flags |= kTakesOver;
      uses_.push_back({v, flags});
    }
    for (int v : model_.makes[job]) uses_.push_back({v, kMakes});
  }
  use_begin_.push_back(static_cast<int>(uses_.size()));
  for (int v = 0; v < model_.form_count(); ++v) {
    facts_.push_back({static_cast<double>(model_.bytes[v]), model_.chain_of[v],
                      model_.producer[v] < 0, model_.FirstVersion(v),
                      model_.LastVersion(v), model_.is_output[v] != 0});
  }
}

const SearchState::Use* SearchState::UsesBegin(const Item& item) {
  if (item.kind == ItemKind::kRun) return uses_.data() + use_begin_[item.id];
  copy_use_ = {item.id, item.kind == ItemKind::kIn
                            ? static_cast<uint8_t>(kMakes | kFromHost)
                            : static_cast<uint8_t>(kToHost)};
  return &copy_use_;
}

const SearchState::Use* SearchState::UsesEnd(const Item& item) {
  if (item.kind == ItemKind::kRun) {
    return uses_.data() + use_begin_[item.id + 1];
  }
  return &copy_use_ + 1;
}

void SearchState::Load(const Schedule& schedule) {
  const size_t count = schedule.items.size();
  slots_.assign(count * kSlotsPerItem + kSlotsPerItem, -1);
  memory_.Reset(slot_count());
  items_.clear();
  slot_of_.clear();
  next_.clear();
  previous_.clear();
  head_ = tail_ = -1;
  free_items_.clear();
  accesses_.resize(model_.form_count());
  for (std::vector<Access>& accesses : accesses_) accesses.clear();
  for (std::vector<int>* list : {&slot_of_, &next_, &previous_}) {
    list->reserve(2 * count);
  }
  items_.reserve(2 * count);
  run_count_.assign(model_.node_count, 0);
  in_count_.assign(model_.form_count(), 0);
  out_count_.assign(model_.form_count(), 0);
  host_home_ = schedule.host_home;
  host_home_.resize(model_.chains.size(), 0);
  compute_ns_ = 0;
  out_ns_ = in_ns_ = 0;
  copy_count_ = 0;
  host_bytes_ = 0;
  log_.clear();
  broken_ = model_.node_count;
  for (size_t p = 0; p < count; ++p) {
    const Item& item = schedule.items[p];
    const int id = NewItem(item);
    const int slot = static_cast<int>(p) * kSlotsPerItem + 1;
    Link(id, slot);
    for (const Use* use = UsesBegin(item); use != UsesEnd(item); ++use) {
      accesses_[use->value].push_back({slot, id, use->flags});
    }
    CountItem(item, 1);
    NoteWorkspace(item, slot, 1);
  }
  for (int v = 0; v < model_.form_count(); ++v) Sweep(v, 1);
  memory_.Settle();
  LoadLinks();
  first_changed_ = 0;
  last_changed_ = -1;
  trial_done_ = false;
  times_stale_ = true;
  FinishTimes();
}

SearchState::Counts SearchState::CountsNow() const {
  return {compute_ns_, broken_, host_bytes_, out_ns_, in_ns_, copy_count_};
}

// Times of what is now the committed state.
void SearchState::FinishTimes() {
  const bool needed = valid() && model_.d2h_bytes_per_ns > 0;
  if (needed && !trial_done_) Makespan();
  TakeLinks();
  if (needed) {
    TakeTimes();
  } else {
    times_stale_ = true;
  }
  trial_done_ = false;
  committed_ = CountsNow();
  first_changed_ = slot_count();
  last_changed_ = -1;
}

Schedule SearchState::ToSchedule() const {
  Schedule schedule;
  schedule.host_home = host_home_;
  schedule.items.reserve(items_.size() - free_items_.size());
  for (int item = head_; item >= 0; item = next_[item]) {
    schedule.items.push_back(items_[item]);
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
  FinishTimes();
}

void SearchState::BeginEdit(int lower, int upper) {
  trial_done_ = false;
  first_changed_ = std::min(first_changed_, lower);
  last_changed_ = std::max(last_changed_, upper);
}

template <typename Change>
void SearchState::ChangeAccesses(const Item& what, int slot,
                                 const Change& change) {
  const Use* end = UsesEnd(what);
  for (const Use* use = UsesBegin(what); use != end; ++use) {
    const size_t first = memory_.Mark();
    Sweep(use->value, -1);
    const size_t second = memory_.Mark();
    change(*use);
    Sweep(use->value, 1);
    memory_.Cancel(first, second);
    NoteWaiters(*use, slot);
    MarkReaders(*use);
  }
}

int SearchState::Insert(ItemKind kind, int id, int slot) {
  BeginEdit(slot, slot);
  const Item what{kind, id};
  const int item = NewItem(what);
  Link(item, slot);
  MarkLinks(item);
  passed_ns_[item] = previous_[item] >= 0 ? passed_ns_[previous_[item]] : 0.0;
  ChangeAccesses(what, slot, [&](const Use& use) {
    AddAccess(use.value, {slot, item, use.flags});
  });
  NoteWorkspace(what, slot, 1);
  CountItem(what, 1);
  log_.push_back({Op::kInsert, item, slot, what});
  return item;
}

void SearchState::Remove(int item) {
  const Item what = items_[item];
  const int slot = slot_of_[item];
  BeginEdit(slot, slot);
  Unlink(item);
  ChangeAccesses(what, slot,
                 [&](const Use& use) { DropAccess(use.value, item); });
  NoteWorkspace(what, slot, -1);
  CountItem(what, -1);
  free_items_.push_back(item);
  log_.push_back({Op::kRemove, item, slot, what});
}

void SearchState::Move(int item, int slot) {
  const Item what = items_[item];
  const int old = slot_of_[item];
  BeginEdit(std::min(slot, old), std::max(slot, old));
  Unlink(item);
  Link(item, slot);
  MarkLinks(item);
  ChangeAccesses(what, std::max(slot, old),
                 [&](const Use& use) { MoveAccess(use.value, item, slot); });
  NoteWorkspace(what, old, -1);
  NoteWorkspace(what, slot, 1);
  log_.push_back({Op::kMove, item, old, what});
}

void SearchState::SetHome(int chain, bool host) {
  BeginEdit(slot_count(), -1);
  log_.push_back({Op::kHome, chain, host_home_[chain], {}});
  for (int v : model_.chains[chain].versions) Sweep(v, -1);
  host_home_[chain] = host;
  for (int v : model_.chains[chain].versions) Sweep(v, 1);
}

void SearchState::Reverse(const Edit& edit) {
  if (edit.op == Op::kInsert) Remove(edit.item);
  if (edit.op == Op::kMove) Move(edit.item, edit.slot);
  if (edit.op == Op::kHome) SetHome(edit.item, edit.slot != 0);
  if (edit.op == Op::kRemove) {
    // Items are freed last in, first out, so the same id comes back.
    const int item = Insert(edit.what.kind, edit.what.id, edit.slot);
    LOADLINE_CHECK(item == edit.item);
  }
}

void SearchState::Restore(const Edit& edit) {
  if (edit.op == Op::kHome) {
    host_home_[edit.item] = edit.slot != 0;
    return;
  }
  const Use* begin = UsesBegin(edit.what);
  const Use* end = UsesEnd(edit.what);
  if (edit.op != Op::kRemove) {
    Unlink(edit.item);
    for (const Use* use = begin; use != end; ++use) {
      DropAccess(use->value, edit.item);
    }
  }
  if (edit.op == Op::kInsert) {
    CountItem(edit.what, -1);
    free_items_.push_back(edit.item);
    return;
  }
  if (edit.op == Op::kRemove) {
    CountItem(edit.what, 1);
    free_items_.pop_back();
    items_[edit.item] = edit.what;
    passed_ns_[edit.item] = times_[edit.item].passed;
  }
  Link(edit.item, edit.slot);
  for (const Use* use = begin; use != end; ++use) {
    AddAccess(use->value, {edit.slot, edit.item, use->flags});
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
  compute_ns_ = committed_.compute_ns;
  broken_ = committed_.broken;
  host_bytes_ = committed_.host_bytes;
  out_ns_ = committed_.out_ns;
  in_ns_ = committed_.in_ns;
  copy_count_ = committed_.copy_count;
  memory_.Drop();
  touched_.clear();
  ++edits_;
  trial_done_ = false;
  first_changed_ = slot_count();
  last_changed_ = -1;
}

bool SearchState::Spare(int item) const {
  const Item& what = items_[item];
  if (what.kind != ItemKind::kRun) return what.kind == ItemKind::kIn;
  const Job& job = model_.jobs[what.id];
  return job.node >= 0 ? run_count_[job.node] > 1 : job.decodes;
}

int SearchState::OutItem(int value) const {
  for (const Access& touch : accesses_[value]) {
    if (touch.flags & kToHost) return touch.item;
  }
  return -1;
}

bool SearchState::OnHost(int value, int slot) const {
  if (HostHome(facts_[value]) && facts_[value].first) return true;
  const int out = OutItem(value);
  return out >= 0 && slot_of_[out] < slot;
}

}  // namespace loadline::planner
