// The incremental form of simulate.cc; see search_state.h for the idea. Tested
// against FindLifetimes and FindTimes in search_state_test.cc.
#include "planner/search_state.h"

#include <algorithm>

#include "planner/check.h"

namespace loadline::planner {
namespace {

constexpr int kSlotsPerItem = 3;
constexpr int kSlideLimit = 24;

}  // namespace

SearchState::SearchState(const Model& model, const Schedule& schedule,
                         int64_t target_bytes)
    : model_(model),
      target_(static_cast<double>(target_bytes)),
      host_limit_(model.host_limit_bytes),
      lanes_(model) {
  Load(schedule);
}

void SearchState::Load(const Schedule& schedule) {
  const size_t count = schedule.items.size();
  slots_.assign(count * kSlotsPerItem + kSlotsPerItem, -1);
  mem_.assign(slots_.size(), 0);
  items_.clear();
  slot_of_.clear();
  free_items_.clear();
  touches_.assign(model_.value_count, {});
  run_count_.assign(model_.node_count, 0);
  host_home_ = schedule.host_home;
  host_home_.resize(model_.chains.size(), 0);
  area_ = 0;
  compute_ns_ = 0;
  token_count_ = 0;
  host_bytes_ = 0;
  log_.clear();
  for (size_t p = 0; p < count; ++p) {
    const Item& item = schedule.items[p];
    const int id = NewItem(item);
    const int slot = static_cast<int>(p) * kSlotsPerItem + 1;
    slots_[slot] = id;
    slot_of_[id] = slot;
    if (item.kind == ItemKind::kRun) {
      compute_ns_ += model_.node_ns[item.id];
      ++run_count_[item.id];
      for (int v : model_.reads[item.id]) touches_[v].push_back({id, false});
      for (int v : model_.makes[item.id]) touches_[v].push_back({id, true});
      mem_[slot] += static_cast<double>(model_.workspace_bytes[item.id]);
      area_ += std::max(0.0, mem_[slot] - target_);
    } else {
      ++token_count_;
      touches_[item.id].push_back({id, item.kind == ItemKind::kIn});
    }
  }
  broken_ = 0;
  for (int node = 0; node < model_.node_count; ++node) {
    if (run_count_[node] == 0) ++broken_;
    if (run_count_[node] > 1 && !model_.may_rerun[node]) ++broken_;
  }
  for (int v = 0; v < model_.value_count; ++v) Contribute(v, 1);
  FlushSpans();
}

Schedule SearchState::ToSchedule() const {
  Schedule schedule;
  schedule.host_home = host_home_;
  for (int item : slots_) {
    if (item >= 0) schedule.items.push_back(items_[item]);
  }
  return schedule;
}

void SearchState::SetTarget(int64_t target_bytes) {
  target_ = static_cast<double>(target_bytes);
  area_ = 0;
  for (double bytes : mem_) area_ += std::max(0.0, bytes - target_);
}

void SearchState::AddRange(int lower, int upper, double bytes) {
  double* mem = mem_.data();
  const double target = target_;
  double before = 0, after = 0;
  for (int s = lower; s < upper; ++s) {
    const double old = mem[s] - target;
    const double now = old + bytes;
    before += old > 0 ? old : 0;
    after += now > 0 ? now : 0;
    mem[s] += bytes;
  }
  area_ += after - before;
}

void SearchState::Contribute(int value, int sign) {
  const double bytes = static_cast<double>(model_.bytes[value]);
  std::vector<Span>& spans = sign < 0 ? before_ : after_;
  const int order = sign < 0 ? before_order_++ : after_order_++;
  const bool home = HostHome(value);
  const bool first = model_.FirstVersion(value);
  const bool ends = (model_.LastVersion(value) && !home) ||
                    (model_.is_output[value] && !home);
  const int updater = model_.Updater(value);
  int lower = model_.producer[value] < 0 && !home ? 0 : -1;
  int upper = lower;  // exclusive end of the touched part
  int reader = -1;    // item of the last read
  bool from_copy = false;
  bool on_host = home && first;
  bool out_seen = false, updated = false;
  int broken = 0;
  const auto close = [&](bool last) {
    if (lower < 0) return;
    if (from_copy && reader < 0 && !last) ++broken;
    if (last) {
      upper = static_cast<int>(slots_.size());
    } else if (reader >= 0 && items_[reader].kind == ItemKind::kRun &&
               model_.Overwrites(items_[reader].id, value)) {
      --upper;
    }
    if (upper > lower && bytes != 0) {
      spans.push_back({order, lower, upper, bytes});
    }
  };
  for (const Touch& touch : touches_[value]) {
    const Item& item = items_[touch.item];
    const int slot = slot_of_[touch.item];
    if (updated) ++broken;
    if (touch.makes) {
      close(false);
      lower = slot;
      upper = slot + 1;
      reader = -1;
      from_copy = item.kind == ItemKind::kIn;
      if (from_copy && !on_host) ++broken;
      continue;
    }
    if (lower < 0) ++broken;
    upper = slot + 1;
    reader = touch.item;
    if (item.kind == ItemKind::kOut) {
      if (out_seen || (home && first)) ++broken;
      out_seen = true;
      on_host = true;
      host_bytes_ += sign * model_.bytes[value];
    } else if (item.id == updater) {
      updated = true;
    }
  }
  if (ends && lower < 0) ++broken;
  close(ends);
  if (home && model_.LastVersion(value) && !first && !out_seen) ++broken;
  if (home && first) host_bytes_ += sign * model_.bytes[value];
  broken_ += sign * broken;
}

void SearchState::AddDifference(int from, int to, double bytes) {
  if (from < to) AddRange(from, to, bytes);
  if (to < from) AddRange(to, from, -bytes);
}

void SearchState::FlushSpans() {
  size_t i = 0, j = 0;
  while (i < before_.size() || j < after_.size()) {
    const bool take_old =
        j == after_.size() ||
        (i < before_.size() && before_[i].order < after_[j].order);
    const bool take_new =
        i == before_.size() ||
        (j < after_.size() && after_[j].order < before_[i].order);
    if (take_old) {
      AddRange(before_[i].lower, before_[i].upper, -before_[i].bytes);
      ++i;
    } else if (take_new) {
      AddRange(after_[j].lower, after_[j].upper, after_[j].bytes);
      ++j;
    } else {
      // Two lifetimes of one value: only the ends differ.
      AddDifference(before_[i].lower, after_[j].lower, -before_[i].bytes);
      AddDifference(before_[i].upper, after_[j].upper, before_[i].bytes);
      ++i;
      ++j;
    }
  }
  before_.clear();
  after_.clear();
  before_order_ = after_order_ = 0;
}

void SearchState::ContributeAll(const Item& item, int sign) {
  if (item.kind != ItemKind::kRun) {
    Contribute(item.id, sign);
    return;
  }
  for (int v : model_.reads[item.id]) Contribute(v, sign);
  for (int v : model_.makes[item.id]) Contribute(v, sign);
}

void SearchState::AddTouch(int value, int item, bool makes) {
  std::vector<Touch>& touches = touches_[value];
  const int slot = slot_of_[item];
  size_t at = touches.size();
  touches.push_back({item, makes});
  while (at > 0 && slot_of_[touches[at - 1].item] > slot) {
    touches[at] = touches[at - 1];
    --at;
  }
  touches[at] = {item, makes};
}

void SearchState::DropTouch(int value, int item) {
  std::vector<Touch>& touches = touches_[value];
  const auto found =
      std::find_if(touches.begin(), touches.end(),
                   [item](const Touch& touch) { return touch.item == item; });
  LOADLINE_CHECK(found != touches.end());
  touches.erase(found);
}

void SearchState::Place(int item, int slot) {
  const Item what = items_[item];
  LOADLINE_CHECK(slots_[slot] < 0);
  slots_[slot] = item;
  slot_of_[item] = slot;
  if (what.kind == ItemKind::kRun) {
    for (int v : model_.reads[what.id]) AddTouch(v, item, false);
    for (int v : model_.makes[what.id]) AddTouch(v, item, true);
    AddRange(slot, slot + 1,
             static_cast<double>(model_.workspace_bytes[what.id]));
  } else {
    AddTouch(what.id, item, what.kind == ItemKind::kIn);
  }
}

void SearchState::Lift(int item) {
  const Item what = items_[item];
  const int slot = slot_of_[item];
  slots_[slot] = -1;
  if (what.kind == ItemKind::kRun) {
    for (int v : model_.reads[what.id]) DropTouch(v, item);
    for (int v : model_.makes[what.id]) DropTouch(v, item);
    AddRange(slot, slot + 1,
             -static_cast<double>(model_.workspace_bytes[what.id]));
  } else {
    DropTouch(what.id, item);
  }
}

int SearchState::NewItem(Item item) {
  if (free_items_.empty()) {
    items_.push_back(item);
    slot_of_.push_back(-1);
    return static_cast<int>(items_.size()) - 1;
  }
  const int id = free_items_.back();
  free_items_.pop_back();
  items_[id] = item;
  return id;
}

int SearchState::Insert(ItemKind kind, int id, int slot) {
  ++edits_;
  const Item what{kind, id};
  const int item = NewItem(what);
  ContributeAll(what, -1);
  Place(item, slot);
  ContributeAll(what, 1);
  FlushSpans();
  if (kind == ItemKind::kRun) {
    compute_ns_ += model_.node_ns[id];
    const int runs = ++run_count_[id];
    if (runs == 1) --broken_;
    if (runs == 2 && !model_.may_rerun[id]) ++broken_;
  } else {
    ++token_count_;
  }
  log_.push_back({Op::kInsert, item, slot, what});
  return item;
}

void SearchState::Remove(int item) {
  ++edits_;
  const Item what = items_[item];
  const int slot = slot_of_[item];
  ContributeAll(what, -1);
  Lift(item);
  ContributeAll(what, 1);
  FlushSpans();
  if (what.kind == ItemKind::kRun) {
    compute_ns_ -= model_.node_ns[what.id];
    const int runs = --run_count_[what.id];
    if (runs == 0) ++broken_;
    if (runs == 1 && !model_.may_rerun[what.id]) --broken_;
  } else {
    --token_count_;
  }
  free_items_.push_back(item);
  log_.push_back({Op::kRemove, item, slot, what});
}

void SearchState::Move(int item, int slot) {
  ++edits_;
  const Item what = items_[item];
  const int old = slot_of_[item];
  ContributeAll(what, -1);
  Lift(item);
  Place(item, slot);
  ContributeAll(what, 1);
  FlushSpans();
  log_.push_back({Op::kMove, item, old, what});
}

void SearchState::ApplyHome(int chain, bool host) {
  for (int v : model_.chains[chain].versions) Contribute(v, -1);
  host_home_[chain] = host;
  for (int v : model_.chains[chain].versions) Contribute(v, 1);
  FlushSpans();
}

void SearchState::SetHome(int chain, bool host) {
  ++edits_;
  log_.push_back({Op::kHome, chain, host_home_[chain], {}});
  ApplyHome(chain, host);
}

void SearchState::Undo(size_t mark) {
  while (log_.size() > mark) {
    const Edit edit = log_.back();
    if (edit.op == Op::kInsert) Remove(edit.item);
    if (edit.op == Op::kMove) Move(edit.item, edit.slot);
    if (edit.op == Op::kHome) SetHome(edit.item, edit.slot != 0);
    if (edit.op == Op::kRemove) {
      // Items are freed last in, first out, so the same id comes back.
      const int item = Insert(edit.what.kind, edit.what.id, edit.slot);
      LOADLINE_CHECK(item == edit.item);
    }
    log_.pop_back();  // the reverse edit's own entry
    log_.pop_back();
  }
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

double SearchState::Makespan() {
  if (token_count_ == 0) return static_cast<double>(compute_ns_);
  sequence_.clear();
  for (int item : slots_) {
    if (item >= 0) sequence_.push_back(items_[item]);
  }
  return lanes_.Run(sequence_, nullptr);
}

void SearchState::UpdateTimes() {
  sequence_.clear();
  for (int item : slots_) {
    if (item >= 0) sequence_.push_back(items_[item]);
  }
  lanes_.Run(sequence_, &passed_ns_);
  time_at_.assign(slots_.size(), 0);
  double now = 0;
  size_t p = 0;
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s] >= 0) now = passed_ns_[p++];
    time_at_[s] = now;
  }
}

int SearchState::SlotAtTime(double ns) const {
  const auto at = std::lower_bound(time_at_.begin(), time_at_.end(), ns);
  return std::min(static_cast<int>(at - time_at_.begin()), slot_count() - 1);
}

int SearchState::PeakSlot() const {
  return static_cast<int>(std::max_element(mem_.begin(), mem_.end()) -
                          mem_.begin());
}

int SearchState::OutItem(int value) const {
  for (const Touch& touch : touches_[value]) {
    if (items_[touch.item].kind == ItemKind::kOut) return touch.item;
  }
  return -1;
}

bool SearchState::OnHost(int value, int slot) const {
  if (HostHome(value) && model_.FirstVersion(value)) return true;
  const int out = OutItem(value);
  return out >= 0 && slot_of_[out] < slot;
}

}  // namespace loadline::planner
