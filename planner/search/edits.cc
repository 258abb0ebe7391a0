// See edits.h. Tested in edits_test.cc and search_state_test.cc (random edits
// and their undo against the from-scratch simulation).
#include "planner/search/edits.h"

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

// Inserts an In before `to_item` (-1: the end) and after `after_slot`, as late
// as possible with `lead` times its duration of compute time before `to_item`.
bool InsertIn(SearchState& state, int value, int to_item, int after_slot,
              double lead) {
  const auto starts = [&](int item) {
    const int before = state.previous(item);
    return before < 0 ? 0.0 : state.PassedNs(before);
  };
  const double latest = starts(to_item) - lead * state.model().InLeadNs(value);
  int item = to_item;
  while (starts(item) > latest) {
    const int before = state.previous(item);
    if (before < 0 || state.slot_of(before) <= after_slot) break;
    item = before;
  }
  const int slot =
      state.GapBefore(item < 0 ? state.slot_count() : state.slot_of(item));
  if (slot < 0) return false;
  state.Insert(ItemKind::kIn, value, slot);
  return true;
}

// Inserts an Out after `from_item` (-1: the start) and before `before_slot`, as
// early as possible with `lead` times its duration since `from_item`.
bool InsertOut(SearchState& state, int value, int from_item, int before_slot,
               double lead) {
  const double from = from_item < 0 ? 0.0 : state.PassedNs(from_item);
  const double earliest = from + lead * state.model().OutLeadNs(value);
  int item = state.next(from_item);
  if (item >= 0 && state.slot_of(item) > before_slot) return false;
  while (
      item >= 0 && state.slot_of(item) < before_slot &&
      (state.previous(item) < 0 ? 0.0 : state.PassedNs(state.previous(item))) <
          earliest) {
    item = state.next(item);
  }
  const int slot =
      state.GapBefore(item < 0 ? state.slot_count() : state.slot_of(item));
  if (slot < 0) return false;
  state.Insert(ItemKind::kOut, value, slot);
  return true;
}

// The decode job of an encoded instance that is alive at the slot; -1: none.
int DecodeAt(const SearchState& state, int value, int slot) {
  for (const Coding& coding : state.model().codings[value]) {
    const std::vector<Access>& accesses = state.accesses(coding.encoded);
    for (size_t t = 1; t < accesses.size(); ++t) {
      if (accesses[t - 1].slot < slot && slot < accesses[t].slot &&
          !accesses[t].makes()) {
        return coding.decode;
      }
    }
  }
  return -1;
}

// The item, or the first run before it that overwrites a value that the node
// reads: a rerun of the node must come before.
int BeforeOverwriters(const SearchState& state, int node, int item) {
  for (int input : state.model().reads[node]) {
    const int run = state.Overwriter(input);
    if (run >= 0 && (item < 0 || state.slot_of(run) < state.slot_of(item))) {
      item = run;
    }
  }
  return item;
}

// Runs node(value) before `before_item`; see EditRecompute.
bool Rerun(SearchState& state, int value, int before_item,
           ChainLimits& limits) {
  const SearchModel& model = state.model();
  const int node = model.producer[value];
  if (node < 0 || !model.may_rerun[node] || --limits.items < 0) return false;
  const int job = model.jobs_of[node].front();
  if (model.makes[job].size() > 1) {
    limits.most_ns += limits.several_ns;
    limits.several_ns = 0;
  }
  limits.most_ns -= static_cast<double>(model.node_ns[job]);
  if (limits.most_ns < 0) return false;
  before_item = BeforeOverwriters(state, node, before_item);
  const int slot = state.GapBefore(
      before_item < 0 ? state.slot_count() : state.slot_of(before_item));
  if (slot < 0) return false;
  const int run = state.Insert(ItemKind::kRun, job, slot);
  for (int input : model.reads[node]) {
    // The accesses around the new read tell whether the input was alive.
    const std::vector<Access>& accesses = state.accesses(input);
    size_t at = 0;
    while (accesses[at].item != run) ++at;
    const bool alive_after = at + 1 < accesses.size()
                                 ? !accesses[at + 1].makes()
                                 : StaysToEnd(state, input);
    if (alive_after) continue;
    const int previous_item = at > 0 ? accesses[at - 1].item : -1;
    const int previous = at > 0 ? accesses[at - 1].slot : -1;
    if (previous < 0 && !StartsOnDevice(state, input) &&
        !state.OnHost(input, state.slot_of(run))) {
      return false;
    }
    if (previous >= 0 && !state.AnyOver(previous + 1, state.slot_of(run))) {
      continue;
    }
    if (state.OnHost(input, state.slot_of(run))) {
      const int out = state.OutItem(input);
      const int after = std::max(previous, out >= 0 ? state.slot_of(out) : -1);
      if (!InsertIn(state, input, run, after, limits.lead)) return false;
      continue;
    }
    const int decode = DecodeAt(state, input, state.slot_of(run));
    if (decode >= 0) {
      const int before_run = state.GapBefore(state.slot_of(run));
      if (before_run < 0) return false;
      state.Insert(ItemKind::kRun, decode, before_run);
      continue;
    }
    const size_t mark = state.Mark();
    const ChainLimits before = limits;
    const bool instead = (limits.copies & 1) != 0;
    const bool stash = instead && !model.codings[input].empty();
    const int coding = stash ? static_cast<int>((limits.copies >> 1) %
                                                model.codings[input].size())
                             : 0;
    const bool copy = instead && model.may_copy[input];
    limits.copies >>= 1;
    const bool done =
        stash  ? EditStash(state, {input, previous_item, run}, coding, false)
        : copy ? InsertOut(state, input, previous_item, state.slot_of(run),
                           limits.lead) &&
                     InsertIn(state, input, run,
                              state.slot_of(state.OutItem(input)), limits.lead)
               : Rerun(state, input, run, limits);
    if (!done) {
      state.Undo(mark);
      limits.items = before.items;
      limits.most_ns = before.most_ns;
      limits.several_ns = before.several_ns;
    }
  }
  return true;
}

}  // namespace

bool FindGap(const SearchState& state, int value, int slot, Gap* gap) {
  gap->value = value;
  gap->from_item = gap->to_item = gap->taken_item = -1;
  gap->from_slot = -1;
  gap->to_slot = state.slot_count();
  for (const Access& access : state.accesses(value)) {
    const int at = access.slot;
    if (at == slot) {
      if ((access.flags & kTakesOver) == 0) return false;
      gap->from_slot = at - 1;
      gap->taken_item = access.item;
      continue;
    }
    if (at < slot) {
      gap->from_item = access.item;
      gap->from_slot = at;
      continue;
    }
    if (access.makes()) return false;  // dead until then
    gap->to_item = access.item;
    gap->to_slot = at;
    break;
  }
  if (gap->from_item < 0 && !StartsOnDevice(state, value)) return false;
  if (gap->to_item >= 0) return true;
  return StaysToEnd(state, value);
}

bool EditRecompute(SearchState& state, const Gap& gap, ChainLimits limits) {
  // An output may also be made again at the very end.
  if (gap.to_item >= 0 && state.item(gap.to_item).kind != ItemKind::kRun) {
    return false;
  }
  return Rerun(state, gap.value, gap.to_item, limits);
}

bool EditCopy(SearchState& state, const Gap& gap, int avoid_slot, double lead) {
  const SearchModel& model = state.model();
  const int value = gap.value;
  if (!model.may_copy[value]) return false;
  if (gap.to_item >= 0 && state.item(gap.to_item).kind == ItemKind::kOut) {
    // The copy out stands too late: move it before `avoid_slot`.
    state.Remove(gap.to_item);
    return InsertOut(state, value, gap.from_item, avoid_slot, lead);
  }
  const bool from_in = gap.from_item >= 0 && gap.taken_item < 0 &&
                       state.item(gap.from_item).kind == ItemKind::kIn;
  if (from_in) {
    state.Remove(gap.from_item);
    return InsertIn(state, value, gap.to_item, avoid_slot, lead);
  }
  // Insertions may slide items, so remember an item instead of `avoid_slot`.
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
  const SearchModel& model = state.model();
  const Chain& versions = model.chains[chain];
  if (!versions.can_host || state.host_home(chain)) return false;
  const int first = versions.versions.front();
  const int last = versions.versions.back();
  state.SetHome(chain, true);
  const int old_out = state.OutItem(first);
  if (old_out >= 0) state.Remove(old_out);
  if (!state.accesses(first).empty()) {
    const Access use = state.accesses(first).front();
    const int use_slot = state.slot_of(use.item);
    const int after = avoid_slot < use_slot ? avoid_slot : -1;
    if (!use.makes() && !InsertIn(state, first, use.item, after, lead)) {
      return false;
    }
  }
  if (first == last || state.OutItem(last) >= 0) return true;
  const int use = state.accesses(last).back().item;
  const int before =
      avoid_slot > state.slot_of(use) ? avoid_slot : state.slot_count();
  return InsertOut(state, last, use, before, lead);
}

namespace {

// Removes an encode, or a decode together with an encode that no other decode
// reads.
bool DropCodec(SearchState& state, int item) {
  const Job& job = state.model().jobs[state.item(item).id];
  int encode = -1;
  if (job.decodes) {
    const int encoded = state.model().reads[state.item(item).id].front();
    const std::vector<Access>& accesses = state.accesses(encoded);
    size_t at = 0;
    while (accesses[at].item != item) ++at;
    const bool last = at + 1 == accesses.size() || accesses[at + 1].makes();
    if (at > 0 && accesses[at - 1].makes() && last) {
      encode = accesses[at - 1].item;
    }
  }
  state.Remove(item);
  if (encode >= 0) state.Remove(encode);
  return true;
}

}  // namespace

bool EditStash(SearchState& state, const Gap& gap, int coding, bool again) {
  const Coding& how = state.model().codings[gap.value][coding];
  if (gap.to_item >= 0 && state.item(gap.to_item).kind != ItemKind::kRun) {
    return false;
  }
  const auto insert_before = [&](int item, int job) {
    const int slot =
        state.GapBefore(item < 0 ? state.slot_count() : state.slot_of(item));
    return slot < 0 ? -1 : state.Insert(ItemKind::kRun, job, slot);
  };
  const int decode = insert_before(gap.to_item, how.decode);
  if (decode < 0) return false;
  const std::vector<Access>& accesses = state.accesses(how.encoded);
  if (!again && accesses.front().item != decode) return true;
  return insert_before(state.next(gap.from_item), how.encode) >= 0;
}

void EditVariant(SearchState& state, int item, int job) {
  const int slot = state.slot_of(item);
  state.Remove(item);
  state.Insert(ItemKind::kRun, job, slot);
}

bool EditDrop(SearchState& state, int item) {
  const SearchModel& model = state.model();
  const Item what = state.item(item);
  if (what.kind == ItemKind::kOut) return false;
  if (what.kind == ItemKind::kRun) {
    if (model.jobs[what.id].node < 0) return DropCodec(state, item);
    if (!state.Spare(item)) return false;
    state.Remove(item);
    return true;
  }
  state.Remove(item);
  // The last In removes its Out too, unless a home on the host needs that.
  for (const Access& access : state.accesses(what.id)) {
    if (state.item(access.item).kind == ItemKind::kIn) return true;
  }
  const int out = state.OutItem(what.id);
  const int chain = model.chain_of[what.id];
  const bool home_needs =
      chain >= 0 && state.host_home(chain) && model.LastVersion(what.id);
  if (out >= 0 && !home_needs) state.Remove(out);
  return true;
}

bool EditUnhome(SearchState& state, int chain) {
  if (!state.host_home(chain)) return false;
  EditStay(state, chain);
  return true;
}

void EditStay(SearchState& state, int chain) {
  const Chain& versions = state.model().chains[chain];
  if (state.host_home(chain)) state.SetHome(chain, false);
  for (int v : versions.versions) {
    std::vector<int> copies;
    for (const Access& access : state.accesses(v)) {
      if (state.item(access.item).kind != ItemKind::kRun) {
        copies.push_back(access.item);
      }
    }
    for (int item : copies) state.Remove(item);
  }
}

}  // namespace loadline::planner
