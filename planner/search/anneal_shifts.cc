// See anneal_moves.h: the moves that only change the order. They shift an item,
// or drag a run together with the runs that block it. Tested in
// anneal_moves_test.cc.
#include <algorithm>

#include "planner/search/anneal_moves.h"

namespace loadline::planner {

bool Moves::PlaceBefore(int item, int slot) {
  const int gap = state_.GapBefore(slot);
  if (gap < 0) return false;
  state_.Move(item, gap);
  return true;
}

int Moves::PickNeighbour(int job) {
  const std::vector<int>& reads = model_.reads[job];
  const std::vector<int>& makes = model_.makes[job];
  const int count = static_cast<int>(reads.size() + makes.size());
  if (count == 0) return -1;
  const int which = random_.Below(count);
  const bool read = which < static_cast<int>(reads.size());
  const int value = read ? reads[which] : makes[which - reads.size()];
  const std::vector<Access>& accesses = state_.accesses(value);
  return accesses[random_.Below(static_cast<int>(accesses.size()))].item;
}

void Moves::Window(int item, int* lower, int* upper) const {
  const int job = state_.item(item).id;
  *lower = 0;
  *upper = state_.slot_count();
  for (int v : model_.reads[job]) {
    const std::vector<Access>& accesses = state_.accesses(v);
    if (accesses.front().makes()) {
      *lower = std::max(*lower, accesses.front().slot + 1);
    }
    const int run = state_.Overwriter(v);
    if (run >= 0 && run != item) {
      *upper = std::min(*upper, state_.slot_of(run));
    }
  }
  for (int v : model_.makes[job]) {
    const int chain = model_.chain_of[v];
    if (chain >= 0) {
      const int first = model_.chains[chain].versions.front();
      if (state_.Overwriter(first) == item) AfterAccesses(first, item, lower);
    }
    const std::vector<Access>& accesses = state_.accesses(v);
    if (accesses.front().item == item && accesses.size() > 1 &&
        !accesses[1].makes()) {
      *upper = std::min(*upper, accesses[1].slot);
    }
  }
}

void Moves::AfterAccesses(int value, int item, int* lower) const {
  const std::vector<Access>& accesses = state_.accesses(value);
  for (size_t i = accesses.size(); i-- > 0;) {
    if (accesses[i].item == item) continue;
    *lower = std::max(*lower, accesses[i].slot + 1);
    return;
  }
}

bool Moves::Shift() {
  const int item = Pick(runs_);
  if (!IsRun(item)) return false;
  const int here = state_.slot_of(item);
  int lower = 0, upper = 0;
  Window(item, &lower, &upper);
  if (upper - lower < 2) return false;
  const int tenth = random_.Below(10);
  if (tenth < tuning_.nudge_tenths) return Nudge(item, lower, upper);
  const int to_ends =
      tuning_.nudge_tenths + tuning_.neighbour_tenths + tuning_.anywhere_tenths;
  if (tenth < tuning_.nudge_tenths + tuning_.neighbour_tenths) {
    const int other = PickNeighbour(state_.item(item).id);
    if (other < 0 || other == item) return false;
    const int at = state_.slot_of(other);
    const int slot = random_.Below(2) == 0 ? at : at + 1;
    if (slot < lower || slot > upper) return false;
    return PlaceBefore(item, slot);
  }
  int slot = lower + random_.Below(upper - lower + 1);
  if (tenth >= to_ends) slot = 2 * tenth < to_ends + 10 ? lower : upper;
  if (slot == here || slot == here + 1) return false;
  return PlaceBefore(item, slot);
}

bool Moves::Nudge(int item, int lower, int upper) {
  int steps = 1;
  while (steps < tuning_.most_nudge_items &&
         random_.Below(tuning_.nudge_period) != 0) {
    ++steps;
  }
  const bool left = random_.Below(2) == 0;
  int other = item;
  for (; steps > 0; --steps) {
    const int next = left ? state_.previous(other) : state_.next(other);
    if (next < 0 || state_.slot_of(next) < lower ||
        state_.slot_of(next) >= upper) {
      break;
    }
    other = next;
  }
  if (other == item) return false;
  return PlaceBefore(item, state_.slot_of(other) + (left ? 0 : 1));
}

bool Moves::ShiftCopy() {
  const int item = Pick(copy_items_);
  if (!state_.alive(item) || state_.item(item).kind == ItemKind::kRun) {
    return false;
  }
  int steps = 1;
  const int period = random_.Below(tuning_.far_copy_period) == 0
                         ? tuning_.far_copy_nudge_period
                         : tuning_.copy_nudge_period;
  while (steps < tuning_.most_copy_nudge_items && random_.Below(period) != 0) {
    ++steps;
  }
  const bool left = random_.Below(2) == 0;
  const int value = state_.item(item).id;
  int other = item;
  for (; steps > 0; --steps) {
    const int next = left ? state_.previous(other) : state_.next(other);
    if (next < 0 || Accesses(next, value)) break;
    other = next;
  }
  if (other == item) return false;
  return PlaceBefore(item, state_.slot_of(other) + (left ? 0 : 1));
}

bool Moves::Accesses(int item, int value) const {
  const Item& what = state_.item(item);
  if (what.kind != ItemKind::kRun) return what.id == value;
  const auto has = [value](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(model_.reads[what.id]) || has(model_.makes[what.id]);
}

bool Moves::Drag() {
  const int item = Pick(runs_);
  if (!IsRun(item)) return false;
  const bool left = random_.Below(2) == 0;
  int other = item;
  int steps = tuning_.drag_items + random_.Below(tuning_.drag_spread);
  for (; steps > 0; --steps) {
    const int next = left ? state_.previous(other) : state_.next(other);
    if (next < 0) break;
    other = next;
  }
  if (other == item) return false;
  int budget = tuning_.drag_limit;
  return left ? DragLeft(item, other, &budget)
              : DragRight(item, other, &budget);
}

bool Moves::DragLeft(int item, int before, int* budget) {
  if (item == before || --*budget < 0) return false;
  for (int v : model_.reads[state_.item(item).id]) {
    const Access first = state_.accesses(v).front();
    if (!first.makes() || first.item == item ||
        first.slot < state_.slot_of(before)) {
      continue;
    }
    if (!IsRun(first.item) || !DragLeft(first.item, before, budget)) {
      return false;
    }
  }
  return PlaceBefore(item, state_.slot_of(before));
}

bool Moves::DragRight(int item, int after, int* budget) {
  if (item == after || --*budget < 0) return false;
  for (int v : model_.makes[state_.item(item).id]) {
    const std::vector<Access>& accesses = state_.accesses(v);
    if (accesses.front().item != item) continue;
    for (size_t t = accesses.size() - 1; t > 0; --t) {
      if (t >= accesses.size()) return false;  // the drag changed them
      const Access access = accesses[t];
      if (access.slot > state_.slot_of(after)) continue;
      if (!IsRun(access.item) || !DragRight(access.item, after, budget)) {
        return false;
      }
    }
  }
  return PlaceBefore(item, state_.slot_of(after) + 1);
}

}  // namespace loadline::planner
