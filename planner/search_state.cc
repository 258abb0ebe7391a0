// The incremental form of simulate.cc; see search_state.h for the idea. Edits
// and their undo here, the lanes in search_times.cc. Tested against
// FindLifetimes and FindTimes in search_state_test.cc.
#include "planner/search_state.h"

#include <algorithm>

#include "planner/check.h"

namespace loadline::planner {
namespace {

constexpr int kSlotsPerItem = 3;
constexpr int kSlideLimit = 24;
constexpr size_t kFewChanges = 24;

}  // namespace

SearchState::SearchState(const Model& model, const Schedule& schedule,
                         int64_t target_bytes)
    : model_(model),
      target_(static_cast<double>(target_bytes)),
      host_limit_(model.host_limit_bytes),
      lanes_(model) {
  FindUses();
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
  token_use_ = {item.id, item.kind == ItemKind::kIn
                             ? static_cast<uint8_t>(kMakes | kFromHost)
                             : static_cast<uint8_t>(kToHost)};
  return &token_use_;
}

const SearchState::Use* SearchState::UsesEnd(const Item& item) {
  if (item.kind == ItemKind::kRun) {
    return uses_.data() + use_begin_[item.id + 1];
  }
  return &token_use_ + 1;
}

void SearchState::Load(const Schedule& schedule) {
  const size_t count = schedule.items.size();
  slots_.assign(count * kSlotsPerItem + kSlotsPerItem, -1);
  mem_.assign(slots_.size(), 0);
  items_.clear();
  slot_of_.clear();
  next_.clear();
  previous_.clear();
  head_ = tail_ = -1;
  free_items_.clear();
  touches_.resize(model_.form_count());
  for (std::vector<Touch>& touches : touches_) touches.clear();
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
  token_count_ = 0;
  host_bytes_ = 0;
  log_.clear();
  changes_.clear();
  broken_ = model_.node_count;
  for (size_t p = 0; p < count; ++p) {
    const Item& item = schedule.items[p];
    const int id = NewItem(item);
    const int slot = static_cast<int>(p) * kSlotsPerItem + 1;
    Link(id, slot);
    for (const Use* use = UsesBegin(item); use != UsesEnd(item); ++use) {
      touches_[use->value].push_back({slot, id, use->flags});
    }
    CountItem(item, 1);
    if (item.kind == ItemKind::kRun) {
      mem_[slot] = static_cast<double>(model_.workspace_bytes[item.id]);
    }
  }
  // The lifetimes by differences, not by changes to sort.
  std::vector<double> rise(slots_.size() + 1, 0);
  for (int v = 0; v < model_.form_count(); ++v) {
    Sweep(v, 1);
    for (const Change& change : changes_) rise[change.slot] += change.bytes;
    changes_.clear();
  }
  double level = 0;
  for (size_t s = 0; s < slots_.size(); ++s) mem_[s] += level += rise[s];
  SetTarget(static_cast<int64_t>(target_));
  merged_ = true;
  area_change_ = 0;
  first_changed_ = 0;
  last_changed_ = -1;
  trial_done_ = false;
  times_stale_ = true;
  committed_ = {compute_ns_, broken_, host_bytes_, token_count_};
  FinishTimes();
}

// Times of what is now the committed state.
void SearchState::FinishTimes() {
  const bool needed = valid() && model_.d2h_bytes_per_ns > 0;
  if (needed && !trial_done_) Makespan();
  if (needed) {
    TakeTimes();
  } else {
    times_stale_ = true;
  }
  trial_done_ = false;
  committed_ = {compute_ns_, broken_, host_bytes_, token_count_};
  first_changed_ = slot_count();
  last_changed_ = -1;
}

Schedule SearchState::ToSchedule() const {
  Schedule schedule;
  schedule.host_home = host_home_;
  for (int item = head_; item >= 0; item = next_[item]) {
    schedule.items.push_back(items_[item]);
  }
  return schedule;
}

void SearchState::SetTarget(int64_t target_bytes) {
  LOADLINE_CHECK(log_.empty());
  target_ = static_cast<double>(target_bytes);
  area_ = 0;
  for (double bytes : mem_) area_ += std::max(0.0, bytes - target_);
}

// Read only: what the area over the target would grow by.
double SearchState::AreaOver(int lower, int upper, double bytes) const {
  typedef double Pair __attribute__((vector_size(16), aligned(8)));
  const double* mem = mem_.data();
  const Pair target = {target_, target_};
  const Pair lifted = {target_ - bytes, target_ - bytes};
  const Pair zero = {0, 0};
  Pair sum[2] = {zero, zero};
  int s = lower;
  for (; s + 4 <= upper; s += 4) {
    for (int half = 0; half < 2; ++half) {
      const Pair at = *reinterpret_cast<const Pair*>(mem + s + 2 * half);
      const Pair now = at - lifted, old = at - target;
      sum[half] += (now > zero ? now : zero) - (old > zero ? old : zero);
    }
  }
  double total = sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1];
  for (; s < upper; ++s) {
    total += std::max(0.0, mem[s] + bytes - target_) -
             std::max(0.0, mem[s] - target_);
  }
  return total;
}

void SearchState::SortChanges() {
  if (changes_.size() > kFewChanges) {
    std::sort(changes_.begin(), changes_.end(),
              [](const Change& a, const Change& b) { return a.slot < b.slot; });
    return;
  }
  for (size_t i = 1; i < changes_.size(); ++i) {
    const Change change = changes_[i];
    size_t at = i;
    for (; at > 0 && changes_[at - 1].slot > change.slot; --at) {
      changes_[at] = changes_[at - 1];
    }
    changes_[at] = change;
  }
}

void SearchState::MergeChanges() {
  if (merged_) return;
  merged_ = true;
  SortChanges();
  size_t kept = 0;
  for (size_t i = 0; i < changes_.size(); ++i) {
    if (kept > 0 && changes_[kept - 1].slot == changes_[i].slot) {
      changes_[kept - 1].bytes += changes_[i].bytes;
    } else {
      changes_[kept++] = changes_[i];
    }
    if (changes_[kept - 1].bytes == 0 &&
        (i + 1 == changes_.size() ||
         changes_[i + 1].slot != changes_[i].slot)) {
      --kept;
    }
  }
  changes_.resize(kept);
  area_change_ = 0;
  double bytes = 0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    bytes += changes_[i].bytes;
    if (bytes == 0) continue;
    area_change_ += AreaOver(changes_[i].slot, changes_[i + 1].slot, bytes);
  }
}

double SearchState::area() {
  MergeChanges();
  return area_ + area_change_;
}

double SearchState::PeakBytes() const {
  std::vector<double> rise(slots_.size() + 1, 0);
  for (const Change& change : changes_) rise[change.slot] += change.bytes;
  double peak = 0, level = 0;
  for (size_t s = 0; s < slots_.size(); ++s) {
    level += rise[s];
    peak = std::max(peak, mem_[s] + level);
  }
  return peak;
}

void SearchState::Commit() {
  if (log_.empty()) return;
  MergeChanges();
  double bytes = 0;
  for (size_t i = 0; i + 1 < changes_.size(); ++i) {
    bytes += changes_[i].bytes;
    if (bytes == 0) continue;
    for (int s = changes_[i].slot; s < changes_[i + 1].slot; ++s) {
      mem_[s] += bytes;
    }
  }
  area_ += area_change_;
  area_change_ = 0;
  changes_.clear();
  log_.clear();
  FinishTimes();
}

void SearchState::Sweep(int value, int sign) {
  const ValueFacts& facts = facts_[value];
  const double bytes = facts.bytes * sign;
  const bool home = HostHome(facts);
  int lower = facts.input && !home ? 0 : -1;
  int upper = lower;  // exclusive end of the touched part
  bool read = false, takes_over = false, from_copy = false;
  bool on_host = home && facts.first;
  bool out_seen = false, updated = false;
  int broken = 0;
  const auto add = [&](int end) {
    if (end <= lower || bytes == 0) return;
    changes_.push_back({lower, bytes});
    changes_.push_back({end, -bytes});
  };
  for (const Touch& touch : touches_[value]) {
    broken += updated;
    if (touch.flags & kMakes) {
      if (lower >= 0) {
        broken += from_copy && !read;
        add(upper - (read && takes_over));
      }
      lower = touch.slot;
      upper = touch.slot + 1;
      read = false;
      from_copy = (touch.flags & kFromHost) != 0;
      broken += from_copy && !on_host;
      continue;
    }
    broken += lower < 0;
    upper = touch.slot + 1;
    read = true;
    takes_over = (touch.flags & kTakesOver) != 0;
    updated = updated || (touch.flags & kUpdates) != 0;
    if (touch.flags & kToHost) {
      broken += out_seen || (home && facts.first);
      out_seen = on_host = true;
      host_bytes_ += sign * model_.bytes[value];
    }
  }
  const bool ends = !home && (facts.last || facts.output);
  if (lower >= 0) {
    broken += from_copy && !read && !ends;
    add(ends ? slot_count() : upper - (read && takes_over));
  } else {
    broken += ends;
  }
  broken += home && facts.last && !facts.first && !out_seen;
  if (home && facts.first) host_bytes_ += sign * model_.bytes[value];
  broken_ += sign * broken;
}

void SearchState::NoteWorkspace(const Item& item, int slot, int sign) {
  if (item.kind != ItemKind::kRun) return;
  const int64_t bytes = sign * model_.workspace_bytes[item.id];
  if (bytes == 0) return;
  changes_.push_back({slot, static_cast<double>(bytes)});
  changes_.push_back({slot + 1, static_cast<double>(-bytes)});
}

void SearchState::CountItem(const Item& item, int sign) {
  if (item.kind == ItemKind::kRun) {
    compute_ns_ += sign * model_.node_ns[item.id];
    const int node = model_.jobs[item.id].node;
    if (node < 0) return;
    int& runs = run_count_[node];
    const auto faults = [&] {
      return (runs == 0) + (runs > 1 && !model_.may_rerun[node]);
    };
    broken_ -= faults();
    runs += sign;
    broken_ += faults();
    return;
  }
  token_count_ += sign;
  (item.kind == ItemKind::kIn ? in_count_ : out_count_)[item.id] += sign;
}

void SearchState::BeginEdit(int lower, int upper) {
  merged_ = false;
  trial_done_ = false;
  first_changed_ = std::min(first_changed_, lower);
  last_changed_ = std::max(last_changed_, upper);
}

// Another maker: later reads of the value may wait for something else.
void SearchState::NoteWaiters(const Use& use) {
  if ((use.flags & kMakes) == 0 || touches_[use.value].empty() ||
      (in_count_[use.value] == 0 && out_count_[use.value] == 0)) {
    return;
  }
  last_changed_ = std::max(last_changed_, touches_[use.value].back().slot);
}

void SearchState::AddTouch(int value, Touch touch) {
  std::vector<Touch>& touches = touches_[value];
  size_t at = touches.size();
  touches.push_back(touch);
  for (; at > 0 && touches[at - 1].slot > touch.slot; --at) {
    touches[at] = touches[at - 1];
  }
  touches[at] = touch;
}

void SearchState::MoveTouch(int value, int item, int slot) {
  std::vector<Touch>& touches = touches_[value];
  size_t at = 0;
  while (touches[at].item != item) ++at;
  Touch touch = touches[at];
  touch.slot = slot;
  for (; at > 0 && touches[at - 1].slot > slot; --at) {
    touches[at] = touches[at - 1];
  }
  for (; at + 1 < touches.size() && touches[at + 1].slot < slot; ++at) {
    touches[at] = touches[at + 1];
  }
  touches[at] = touch;
}

// Most of a value's lifetimes are as before: the changes from `first` on take
// the old ones out, those from `second` on put the new ones in.
void SearchState::Cancel(size_t first, size_t second) {
  size_t kept = second;
  for (size_t i = second; i < changes_.size(); ++i) {
    bool found = false;
    for (size_t j = first; j < second && !found; ++j) {
      if (changes_[j].slot == changes_[i].slot &&
          changes_[j].bytes == -changes_[i].bytes) {
        changes_[j].bytes = 0;
        found = true;
      }
    }
    if (!found) changes_[kept++] = changes_[i];
  }
  changes_.resize(kept);
  kept = first;
  for (size_t i = first; i < changes_.size(); ++i) {
    if (changes_[i].bytes != 0) changes_[kept++] = changes_[i];
  }
  changes_.resize(kept);
}

void SearchState::DropTouch(int value, int item) {
  std::vector<Touch>& touches = touches_[value];
  size_t at = 0;
  while (touches[at].item != item) ++at;
  touches.erase(touches.begin() + static_cast<std::ptrdiff_t>(at));
}

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
    }
    return static_cast<int>(items_.size()) - 1;
  }
  const int id = free_items_.back();
  free_items_.pop_back();
  items_[id] = item;
  return id;
}

int SearchState::Insert(ItemKind kind, int id, int slot) {
  BeginEdit(slot, slot);
  const Item what{kind, id};
  const int item = NewItem(what);
  Link(item, slot);
  passed_ns_[item] = previous_[item] >= 0 ? passed_ns_[previous_[item]] : 0.0;
  const Use* end = UsesEnd(what);
  for (const Use* use = UsesBegin(what); use != end; ++use) {
    const size_t first = changes_.size();
    Sweep(use->value, -1);
    const size_t second = changes_.size();
    AddTouch(use->value, {slot, item, use->flags});
    Sweep(use->value, 1);
    Cancel(first, second);
    NoteWaiters(*use);
  }
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
  const Use* end = UsesEnd(what);
  for (const Use* use = UsesBegin(what); use != end; ++use) {
    const size_t first = changes_.size();
    Sweep(use->value, -1);
    const size_t second = changes_.size();
    DropTouch(use->value, item);
    Sweep(use->value, 1);
    Cancel(first, second);
    NoteWaiters(*use);
  }
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
  const Use* end = UsesEnd(what);
  for (const Use* use = UsesBegin(what); use != end; ++use) {
    const size_t first = changes_.size();
    Sweep(use->value, -1);
    const size_t second = changes_.size();
    MoveTouch(use->value, item, slot);
    Sweep(use->value, 1);
    Cancel(first, second);
    NoteWaiters(*use);
  }
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
      DropTouch(use->value, edit.item);
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
    AddTouch(use->value, {edit.slot, edit.item, use->flags});
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
  token_count_ = committed_.token_count;
  changes_.clear();
  area_change_ = 0;
  merged_ = true;
  trial_done_ = false;
  first_changed_ = slot_count();
  last_changed_ = -1;
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

int SearchState::PeakSlot() const {
  return static_cast<int>(std::max_element(mem_.begin(), mem_.end()) -
                          mem_.begin());
}

bool SearchState::Spare(int item) const {
  const Item& what = items_[item];
  if (what.kind != ItemKind::kRun) return what.kind == ItemKind::kIn;
  const Job& job = model_.jobs[what.id];
  return job.node >= 0 ? run_count_[job.node] > 1 : job.decodes;
}

int SearchState::OutItem(int value) const {
  for (const Touch& touch : touches_[value]) {
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
