// See anneal_moves.h. Inserts a rerun, a copy or a codec where a value is idle
// across a high point, removes one, exchanges them, changes a node's variant.
// Tested in anneal_moves_test.cc.
#include "planner/search/anneal_moves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace loadline::planner {

Moves::Moves(SearchState& state, Random& random)
    : state_(state),
      model_(state.model()),
      tuning_(model_.tuning.moves),
      random_(random) {
  for (size_t c = 0; c < model_.chains.size(); ++c) {
    if (model_.chains[c].can_host) homes_.push_back(static_cast<int>(c));
  }
  for (int v = 0; v < model_.value_count; ++v) {
    if (model_.bytes[v] > 0) values_.push_back(v);
  }
  copies_ = model_.d2h_bytes_per_ns > 0;
  codecs_ = model_.representation_count() > model_.value_count;
}

void Moves::Refresh() {
  state_.Respread();
  runs_.clear();
  extras_.clear();
  with_variants_.clear();
  copy_items_.clear();
  over_.clear();
  near_.clear();
  for (int item = state_.next(-1); item >= 0; item = state_.next(item)) {
    (state_.item(item).kind == ItemKind::kRun ? runs_ : copy_items_)
        .push_back(item);
    if (state_.Spare(item)) extras_.push_back(item);
    if (JobsOf(item).size() > 1) with_variants_.push_back(item);
    const double bytes = state_.BytesAt(state_.slot_of(item));
    if (bytes > state_.target()) over_.push_back(item);
    if (bytes > tuning_.near_target * state_.target()) near_.push_back(item);
  }
}

bool Moves::Propose(const MoveLimits& limits) {
  limits_ = limits;
  if (!with_variants_.empty() && random_.Below(tuning_.variant_period) == 0) {
    return ChangeVariant();
  }
  int percent = random_.Below(100);
  if (!copies_) {
    if ((percent -= tuning_.shift_percent) < 0) return Shift();
    if ((percent -= tuning_.free_percent) < 0) {
      return state_.excess_area() > 0 ? Free() : Shift();
    }
    if ((percent -= tuning_.drop_percent) < 0) return Drop();
    if ((percent -= tuning_.replace_percent) < 0) return Replace();
    return Drag();
  }
  if ((percent -= tuning_.shift_percent_with_copies) < 0) return Shift();
  percent -= tuning_.shift_copy_percent;
  if (percent < 0 && !copy_items_.empty()) return ShiftCopy();
  if ((percent -= tuning_.free_percent_with_copies) < 0) {
    return state_.excess_area() > 0 ? Free() : Replace();
  }
  if ((percent -= tuning_.drop_percent_with_copies) < 0) return Drop();
  if ((percent -= tuning_.replace_percent_with_copies) < 0) return Replace();
  percent -= tuning_.change_home_percent;
  if (percent < 0 && !homes_.empty()) return ChangeHome();
  return Drag();
}

int Moves::Pick(const std::vector<int>& list) {
  return list[random_.Below(static_cast<int>(list.size()))];
}

bool Moves::IsRun(int item) const {
  return state_.alive(item) && state_.item(item).kind == ItemKind::kRun;
}

const std::vector<int>& Moves::JobsOf(int item) const {
  const Item& what = state_.item(item);
  const int node = what.kind == ItemKind::kRun ? model_.jobs[what.id].node : -1;
  return node >= 0 ? model_.jobs_of[node] : no_jobs_;
}

bool Moves::ChangeVariant() {
  const int item = Pick(with_variants_);
  if (!state_.alive(item)) return false;
  const std::vector<int>& jobs = JobsOf(item);
  if (jobs.size() < 2) return false;
  const int job = Pick(jobs);
  if (job == state_.item(item).id) return false;
  EditVariant(state_, item, job);
  return true;
}

int Moves::PickHigh() {
  const std::vector<int>& list = over_.empty() ? near_ : over_;
  const int last = tuning_.high_tries - 1;
  for (int tries = 0; tries <= last && !list.empty(); ++tries) {
    const int item = Pick(list);
    if (!state_.alive(item)) continue;
    const int slot = state_.slot_of(item);
    // The lists may be out of date: the last try takes what it finds.
    if (state_.BytesAt(slot) > state_.target() || tries == last ||
        over_.empty()) {
      return slot;
    }
  }
  return -1;
}

bool Moves::PickGap(int slot, Gap* gap) {
  for (int tries = 0; tries < tuning_.gap_tries; ++tries) {
    if (FindGap(state_, Pick(values_), slot, gap)) return true;
  }
  return false;
}

double Moves::DrawLead() {
  return tuning_.least_lead -
         tuning_.lead_scale * std::log(1 - random_.Uniform());
}

ChainLimits Moves::DrawLimits() {
  ChainLimits limits;
  limits.items = 1 + random_.Below(tuning_.chain_limit);
  if (copies_ || codecs_) {
    limits.copies = static_cast<uint32_t>(random_.Bits() & random_.Bits());
    limits.lead = DrawLead();
  }
  return limits;
}

// A rerun lowers the energy at most by what the gap's bytes are over the
// target, and by compute's waits, which it may fill; items that slide to make
// room may add a little. A node that makes several values may free the others
// too.
void Moves::LimitTime(const Gap& gap, double removed_ns, ChainLimits* limits) {
  const double excess_area = state_.excess_area();
  const double freed_area =
      state_.FreedArea(gap.value, std::max(0, gap.from_slot), gap.to_slot);
  const double waits_ns =
      copies_ ? limits_.step_ns - static_cast<double>(state_.compute_ns()) : 0;
  limits->most_ns =
      limits_.allowed_ns + removed_ns + waits_ns + limits_.lambda * freed_area;
  limits->several_ns = limits_.lambda * (excess_area - freed_area);
}

bool Moves::FreeGap(const Gap& gap, int slot, bool copy, double removed_ns) {
  const int codings = static_cast<int>(model_.codings[gap.value].size());
  if (codings > 0 && random_.Below(2) == 0) {
    return EditStash(state_, gap, random_.Below(codings),
                     random_.Below(tuning_.encode_again_period) == 0);
  }
  if (copy) return EditCopy(state_, gap, slot, DrawLead());
  ChainLimits limits = DrawLimits();
  LimitTime(gap, removed_ns, &limits);
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
  // The removed copy may have caused up to the whole stall of the step.
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
