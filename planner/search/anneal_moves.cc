// See anneal_moves.h. Put a rerun, a copy or a codec where a value lies idle
// across a high point, take one out, exchange them, run a node another way.
// Tested in solve_test.cc and permissions_test.cc.
#include "planner/search/anneal_moves.h"

#include <cmath>
#include <cstdint>

namespace loadline::planner {
namespace {

constexpr int kChainLimit = 6;
constexpr int kTries = 24;

}  // namespace

Moves::Moves(SearchState& state, Random& random)
    : state_(state), model_(state.model()), random_(random) {
  for (size_t c = 0; c < model_.chains.size(); ++c) {
    if (model_.chains[c].can_host) homes_.push_back(static_cast<int>(c));
  }
  for (int v = 0; v < model_.value_count; ++v) {
    if (model_.bytes[v] > 0) values_.push_back(v);
  }
  copies_ = model_.d2h_bytes_per_ns > 0;
  codecs_ = model_.form_count() > model_.value_count;
}

void Moves::Refresh() {
  state_.Respread();
  runs_.clear();
  extras_.clear();
  permissions_.clear();
  tokens_.clear();
  over_.clear();
  near_.clear();
  for (int item = state_.next(-1); item >= 0; item = state_.next(item)) {
    (state_.item(item).kind == ItemKind::kRun ? runs_ : tokens_)
        .push_back(item);
    if (state_.Spare(item)) extras_.push_back(item);
    if (WaysOf(item).size() > 1) permissions_.push_back(item);
    const double bytes = state_.BytesAt(state_.slot_of(item));
    if (bytes > state_.target()) over_.push_back(item);
    if (bytes > 0.98 * state_.target()) near_.push_back(item);
  }
}

bool Moves::Propose(const MoveLimits& limits) {
  limits_ = limits;
  if (!permissions_.empty() && random_.Below(12) == 0) return ChangeWay();
  const int kind = random_.Below(100);
  if (!copies_) {
    if (kind < 50) return Shift();
    if (kind < 75) return state_.excess_area() > 0 ? Free() : Shift();
    if (kind < 87) return Drop();
    if (kind < 94) return Replace();
    return Drag();
  }
  if (kind < 30) return Shift();
  if (kind < 50 && !tokens_.empty()) return ShiftToken();
  if (kind < 70) return state_.excess_area() > 0 ? Free() : Replace();
  if (kind < 80) return Drop();
  if (kind < 90) return Replace();
  if (kind < 95 && !homes_.empty()) return ChangeHome();
  return Drag();
}

int Moves::Pick(const std::vector<int>& list) {
  return list[random_.Below(static_cast<int>(list.size()))];
}

bool Moves::IsRun(int item) const {
  return state_.alive(item) && state_.item(item).kind == ItemKind::kRun;
}

const std::vector<int>& Moves::WaysOf(int item) const {
  const Item& what = state_.item(item);
  const int node = what.kind == ItemKind::kRun ? model_.jobs[what.id].node : -1;
  return node >= 0 ? model_.ways[node] : none_;
}

bool Moves::ChangeWay() {
  const int item = Pick(permissions_);
  if (!state_.alive(item)) return false;
  const std::vector<int>& ways = WaysOf(item);
  if (ways.size() < 2) return false;
  const int job = Pick(ways);
  if (job == state_.item(item).id) return false;
  EditVariant(state_, item, job);
  return true;
}

int Moves::PickHigh() {
  const std::vector<int>& list = over_.empty() ? near_ : over_;
  for (int tries = 0; tries < 4 && !list.empty(); ++tries) {
    const int item = Pick(list);
    if (!state_.alive(item)) continue;
    const int slot = state_.slot_of(item);
    if (state_.BytesAt(slot) > state_.target() || tries == 3 || over_.empty()) {
      return slot;
    }
  }
  return -1;
}

bool Moves::PickGap(int slot, Gap* gap) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (FindGap(state_, Pick(values_), slot, gap)) return true;
  }
  return false;
}

double Moves::DrawLead() { return 0.2 - 1.2 * std::log(1 - random_.Uniform()); }

ChainLimits Moves::DrawLimits() {
  ChainLimits limits;
  limits.items = 1 + random_.Below(kChainLimit);
  if (copies_ || codecs_) {
    limits.copies = static_cast<uint32_t>(random_.Bits() & random_.Bits());
    limits.lead = DrawLead();
  }
  return limits;
}

bool Moves::FreeGap(const Gap& gap, int slot, bool copy, double removed_ns) {
  const int codings = static_cast<int>(model_.codings[gap.value].size());
  if (codings > 0 && random_.Below(2) == 0) {
    return EditStash(state_, gap, random_.Below(codings),
                     random_.Below(4) == 0);
  }
  if (copy) return EditCopy(state_, gap, slot, DrawLead());
  // No rerun can win more than all the excess area there is.
  ChainLimits limits = DrawLimits();
  limits.most_ns =
      limits_.allowed_ns + removed_ns + limits_.lambda * state_.excess_area();
  return EditRecompute(state_, gap, limits);
}

bool Moves::Free() {
  const int slot = PickHigh();
  Gap gap;
  if (slot < 0 || !PickGap(slot, &gap)) return false;
  return FreeGap(gap, slot, model_.may_copy[gap.value] && random_.Below(2) == 0,
                 0);
}

int Moves::PickExtra() {
  if (extras_.empty()) return -1;
  const int item = Pick(extras_);
  return state_.alive(item) && state_.Spare(item) ? item : -1;
}

bool Moves::Drop() {
  const int item = PickExtra();
  return item >= 0 && EditDrop(state_, item);
}

bool Moves::Replace() {
  const int item = PickExtra();
  if (item < 0) return false;
  const Item what = state_.item(item);
  const int end = state_.slot_of(item);
  if (!EditDrop(state_, item)) return false;
  // A copy may have stalled the step by anything up to the whole stall.
  const double removed_ns =
      what.kind == ItemKind::kRun
          ? static_cast<double>(model_.node_ns[what.id])
          : limits_.step_ns - static_cast<double>(state_.compute_ns());
  const int value = what.kind == ItemKind::kIn ? what.id
                    : model_.makes[what.id].empty()
                        ? -1
                        : Pick(model_.makes[what.id]);
  Gap gap;
  if (value < 0 || !FindGap(state_, value, end, &gap)) return false;
  const int width = end - gap.from_slot - 1;
  if (width < 1) return false;
  const int slot = gap.from_slot + 1 + random_.Below(width);
  if (random_.Below(2) == 0 && copies_) {
    const bool copy = what.kind != ItemKind::kIn && model_.may_copy[value];
    return FreeGap(gap, slot, copy, removed_ns);
  }
  if (!PickGap(slot, &gap)) return false;
  return FreeGap(gap, slot, model_.may_copy[gap.value] && random_.Below(2) == 0,
                 removed_ns);
}

bool Moves::ChangeHome() {
  const int chain = Pick(homes_);
  if (state_.host_home(chain)) return EditUnhome(state_, chain);
  const int slot = PickHigh();
  return slot >= 0 && EditHome(state_, chain, slot, DrawLead());
}

}  // namespace loadline::planner
