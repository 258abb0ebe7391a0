// See edits.h. Tested in search_state_test.cc (random edits and their undo
// against the from-scratch simulation).
#include "planner/edits.h"

#include <algorithm>

namespace loadline::planner {
namespace {

bool StartsOnDevice(const SearchState& state, int value) {
  const int chain = state.model().chain_of[value];
  return state.model().producer[value] < 0 &&
         (chain < 0 || !state.host_home(chain));
}

bool StaysToEnd(const SearchState& state, int value) {
  const int chain = state.model().chain_of[value];
  if (chain >= 0 && state.host_home(chain)) return false;
  return state.model().is_output[value] || state.model().LastVersion(value);
}

bool OverTarget(const SearchState& state, int lower, int upper) {
  for (int s = lower; s < upper; ++s) {
    if (state.BytesAt(s) > state.target()) return true;
  }
  return false;
}

// An empty slot in (after, before) closest to `wanted`, -1 if there is none.
// Both bounds are slots; sliding may move them, so items bound them instead.
int GapNear(SearchState& state, int wanted, int after, int before) {
  wanted = std::clamp(wanted, after + 1, before);
  return state.GapBefore(wanted);
}

// Inserts an In so that it ends, with the lead, before `to_item` starts and
// begins after `after_slot`.
bool InsertIn(SearchState& state, int value, int to_item, int after_slot,
              double lead) {
  const int to_slot = to_item < 0 ? state.slot_count() : state.slot_of(to_item);
  const double end = state.TimeAt(std::max(to_slot - 1, 0));
  const int wanted =
      state.SlotAtTime(end - lead * state.model().in_ns[value]) + 1;
  const int before = std::min(to_slot, state.slot_count());
  if (after_slot + 1 > before) return false;
  const int slot = GapNear(state, wanted, after_slot, before);
  if (slot < 0) return false;
  state.Insert(ItemKind::kIn, value, slot);
  return true;
}

bool InsertOut(SearchState& state, int value, int from_item, int before_slot,
               double lead) {
  const int from_slot = from_item < 0 ? -1 : state.slot_of(from_item);
  const double start = from_slot < 0 ? 0 : state.TimeAt(from_slot);
  const int wanted =
      state.SlotAtTime(start + lead * state.model().out_ns[value]) + 1;
  if (from_slot + 1 > before_slot) return false;
  const int slot = GapNear(state, wanted, from_slot, before_slot);
  if (slot < 0) return false;
  state.Insert(ItemKind::kOut, value, slot);
  return true;
}

// Runs node(value) before `before_item`; see EditRecompute.
bool Rerun(SearchState& state, int value, int before_item, int& items_left) {
  const Model& model = state.model();
  const int node = model.producer[value];
  if (node < 0 || !model.may_rerun[node] || --items_left < 0) return false;
  const int slot = state.GapBefore(
      before_item < 0 ? state.slot_count() : state.slot_of(before_item));
  if (slot < 0) return false;
  const int run = state.Insert(ItemKind::kRun, node, slot);
  for (int input : model.reads[node]) {
    // The touches around the new read say whether the input was alive.
    const std::vector<Touch>& touches = state.touches(input);
    size_t at = 0;
    while (touches[at].item != run) ++at;
    const bool alive_after = at + 1 < touches.size() ? !touches[at + 1].makes
                                                     : StaysToEnd(state, input);
    if (alive_after) continue;
    const int previous = at > 0 ? state.slot_of(touches[at - 1].item) : -1;
    if (previous < 0 && !StartsOnDevice(state, input) &&
        !state.OnHost(input, state.slot_of(run))) {
      return false;
    }
    if (previous >= 0 && !OverTarget(state, previous + 1, state.slot_of(run))) {
      continue;
    }
    if (state.OnHost(input, state.slot_of(run))) {
      const int out = state.OutItem(input);
      const int after = std::max(previous, out >= 0 ? state.slot_of(out) : -1);
      if (!InsertIn(state, input, run, after, 1.2)) return false;
      continue;
    }
    const size_t mark = state.Mark();
    const int left = items_left;
    if (!Rerun(state, input, run, items_left)) {
      state.Undo(mark);
      items_left = left;
    }
  }
  return true;
}

}  // namespace

bool FindGap(const SearchState& state, int value, int slot, Gap* gap) {
  gap->value = value;
  gap->from_item = gap->to_item = -1;
  gap->from_slot = -1;
  gap->to_slot = state.slot_count();
  for (const Touch& touch : state.touches(value)) {
    const int at = state.slot_of(touch.item);
    if (at == slot) return false;
    if (at < slot) {
      gap->from_item = touch.item;
      gap->from_slot = at;
      continue;
    }
    if (touch.makes) return false;  // dead until then
    gap->to_item = touch.item;
    gap->to_slot = at;
    break;
  }
  if (gap->from_item < 0 && !StartsOnDevice(state, value)) return false;
  if (gap->to_item >= 0) return true;
  return StaysToEnd(state, value);
}

bool EditRecompute(SearchState& state, const Gap& gap, int chain_limit) {
  // An output may also be made again at the very end.
  if (gap.to_item >= 0 && state.item(gap.to_item).kind != ItemKind::kRun) {
    return false;
  }
  return Rerun(state, gap.value, gap.to_item, chain_limit);
}

bool EditCopy(SearchState& state, const Gap& gap, int avoid_slot, double lead) {
  const Model& model = state.model();
  const int value = gap.value;
  if (!model.may_copy[value]) return false;
  if (gap.to_item >= 0 && state.item(gap.to_item).kind == ItemKind::kOut) {
    // Its copy out is placed too late: move it before the point.
    state.Remove(gap.to_item);
    return InsertOut(state, value, gap.from_item, avoid_slot, lead);
  }
  const bool from_in =
      gap.from_item >= 0 && state.item(gap.from_item).kind == ItemKind::kIn;
  if (from_in) {
    state.Remove(gap.from_item);
    return InsertIn(state, value, gap.to_item, avoid_slot, lead);
  }
  // Sliding keeps order, so the point to avoid is remembered by its item.
  int mark_item = -1;
  for (int s = avoid_slot; s < gap.to_slot && mark_item < 0; ++s) {
    mark_item = state.item_at(s);
  }
  if (!state.OnHost(value, avoid_slot)) {
    const int late_out = state.OutItem(value);
    if (late_out >= 0) state.Remove(late_out);
    if (!InsertOut(state, value, gap.from_item, avoid_slot, lead)) return false;
  }
  const int after = mark_item >= 0 && mark_item != gap.to_item
                        ? state.slot_of(mark_item)
                        : avoid_slot;
  return InsertIn(state, value, gap.to_item, after, lead);
}

bool EditHome(SearchState& state, int chain, int avoid_slot, double lead) {
  const Model& model = state.model();
  const Chain& versions = model.chains[chain];
  if (!versions.can_host || state.host_home(chain)) return false;
  const int first = versions.versions.front();
  const int last = versions.versions.back();
  state.SetHome(chain, true);
  const int old_out = state.OutItem(first);
  if (old_out >= 0) state.Remove(old_out);
  if (!state.touches(first).empty()) {
    const Touch use = state.touches(first).front();
    const int use_slot = state.slot_of(use.item);
    const int after = avoid_slot < use_slot ? avoid_slot : -1;
    if (!use.makes && !InsertIn(state, first, use.item, after, lead)) {
      return false;
    }
  }
  if (first == last || state.OutItem(last) >= 0) return true;
  const int use = state.touches(last).back().item;
  const int before =
      avoid_slot > state.slot_of(use) ? avoid_slot : state.slot_count();
  return InsertOut(state, last, use, before, lead);
}

bool EditDrop(SearchState& state, int item) {
  const Item what = state.item(item);
  if (what.kind == ItemKind::kOut) return false;
  if (what.kind == ItemKind::kRun) {
    if (state.run_count(what.id) < 2) return false;
    state.Remove(item);
    return true;
  }
  state.Remove(item);
  // The last In takes its Out along, unless the value's home needs it.
  for (const Touch& touch : state.touches(what.id)) {
    if (state.item(touch.item).kind == ItemKind::kIn) return true;
  }
  const int out = state.OutItem(what.id);
  const int chain = state.model().chain_of[what.id];
  const bool home_needs = chain >= 0 && state.host_home(chain) &&
                          state.model().LastVersion(what.id);
  if (out >= 0 && !home_needs) state.Remove(out);
  return true;
}

bool EditUnhome(SearchState& state, int chain) {
  if (!state.host_home(chain)) return false;
  const Chain& versions = state.model().chains[chain];
  state.SetHome(chain, false);
  for (int v : versions.versions) {
    std::vector<int> tokens;
    for (const Touch& touch : state.touches(v)) {
      if (state.item(touch.item).kind != ItemKind::kRun) {
        tokens.push_back(touch.item);
      }
    }
    for (int item : tokens) state.Remove(item);
  }
  return true;
}

}  // namespace loadline::planner
