// Times of a SearchState whose copy lanes slow each other down: then it counts
// what both do at any time, not only the order on each. The pass goes through
// the sequence as search_times.cc does, and follows the lanes only where
// compute waits for one, up to the end of the copy it waits for; until then
// every copy that may start is known, because compute stands still. What the
// lanes had done when compute passed an item is kept with the item, so a pass
// begins at the last item before the first change at which no changed copy out
// could have been under way, and ends where nothing differs any more. Tested in
// search_state_test.cc.
#include <algorithm>
#include <cmath>

#include "planner/base/check.h"
#include "planner/search/search_state.h"

namespace loadline::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Times that differ by less do by rounding only.
constexpr double kSameNs = 1e-4;

bool Same(double a, double b) { return a == b || std::abs(a - b) < kSameNs; }

}  // namespace

// Whether both go on alike.
bool SearchState::SameLanes(const LanePair& a, const LanePair& b) const {
  const auto same = [](const CopyLane& l, const CopyLane& m, double rate) {
    if (l.token != m.token || l.busy != m.busy || l.ahead != m.ahead) {
      return false;
    }
    return !l.busy || (Same(l.moves_from_ns, m.moves_from_ns) &&
                       Same(l.left_bytes / rate, m.left_bytes / rate));
  };
  return same(a.out, b.out, model_.d2h_bytes_per_ns) &&
         same(a.in, b.in, model_.h2d_bytes_per_ns) && Same(a.now_ns, b.now_ns);
}

// One pass, at `item`.
struct SearchState::CoupledPass {
  ItemTimes at;
  LanePair lanes;
  int restart_slot = -1;  // up to here the times are the committed ones
  int item = -1;
  int slot = 0;
};

// The first Out after the item.
int SearchState::NextOut(int item) const {
  while (item < 0 || slot_of_[item] <= last_changed_) {
    item = next(item);
    if (item < 0 || items_[item].kind == ItemKind::kOut) return item;
  }
  return links_[item].next_out;
}

// The first In after the item and before `end`; -1: none.
int SearchState::NextIn(int item, int end) const {
  for (item = next(item); item >= 0 && item != end; item = next_[item]) {
    if (items_[item].kind == ItemKind::kIn) return item;
  }
  return -1;
}

// `token` is the next of its lane. An Out can start once compute has passed the
// run that made its value, whether or not compute has come to the token.
void SearchState::TakeOut(CoupledPass& pass, int token) const {
  CopyLane& lane = pass.lanes.out;
  lane.token = token;
  lane.busy = false;
  lane.ready_ns = kNever;
  if (token < 0) return;
  const int maker = SourceOf(token);
  if (maker >= 0 && slot_of_[maker] >= pass.slot) return;
  lane.ready_ns = std::max(
      pass.lanes.now_ns, maker < 0 ? 0.0 : PassedAt(maker, pass.restart_slot));
}

void SearchState::TakeIn(CoupledPass& pass, int token) const {
  CopyLane& lane = pass.lanes.in;
  lane.token = token;
  lane.busy = false;
  lane.ready_ns = kNever;
  if (token < 0) return;
  lane.ready_ns =
      std::max(pass.lanes.now_ns, PassedAt(token, pass.restart_slot));
}

// Follows both lanes to the next start or end of a copy; false: there is none.
bool SearchState::StepLanes(CoupledPass& pass) const {
  LanePair& lanes = pass.lanes;
  const double now = lanes.now_ns;
  const bool both = lanes.out.Moving(now) && lanes.in.Moving(now);
  const double factor = both ? model_.bidirectional : 1.0;
  const double out_rate = model_.d2h_bytes_per_ns * factor;
  const double in_rate = model_.h2d_bytes_per_ns * factor;
  const auto next_event = [&](const CopyLane& lane, double rate) {
    if (!lane.busy) return lane.ready_ns;
    return lane.Moving(now) ? now + lane.left_bytes / rate : lane.moves_from_ns;
  };
  const double out_event = next_event(lanes.out, out_rate);
  const double in_event = next_event(lanes.in, in_rate);
  const double next = std::min(out_event, in_event);
  if (next == kNever) return false;
  // True if the copy has ended.
  const auto advance = [&](CopyLane& lane, double rate, double event) {
    if (lane.Moving(now)) {
      lane.left_bytes = std::max(0.0, lane.left_bytes - (next - now) * rate);
      return event <= next;
    }
    if (lane.busy || event > next) return false;
    lane.busy = true;
    lane.moves_from_ns = next + model_.latency_ns;
    const int value = items_[lane.token].id;
    lane.left_bytes = static_cast<double>(model_.problem->values[value].bytes);
    return false;
  };
  const bool out_ended = advance(lanes.out, out_rate, out_event);
  const bool in_ended = advance(lanes.in, in_rate, in_event);
  lanes.now_ns = next;
  ItemTimes& at = pass.at;
  if (out_ended) {
    const int token = lanes.out.token;
    at.out_idle += next - at.out_free - model_.out_ns[items_[token].id];
    at.out_free = next;
    TakeOut(pass, NextOut(token));
    lanes.out.ahead = token;
  }
  if (in_ended) {
    const int token = lanes.in.token;
    at.in_idle += next - at.in_free - model_.in_ns[items_[token].id];
    at.in_free = next;
    TakeIn(pass, NextIn(token, pass.item));
  }
  return true;
}

// The item after which to begin; -1: before the first. An Out that is changed
// must not have been started, nor could it have been.
int SearchState::RestartCoupled(ItemTimes& at, LanePair& lanes) const {
  if (times_stale_) return -1;
  int item = ItemBefore(first_changed_);
  for (; item >= 0; item = previous_[item]) {
    const CopyLane& out = lanes_[item].out;
    const int started = out.busy ? out.token : out.ahead;
    if (started >= 0) {
      const int slot = slot_of_[started];
      if (slot < 0 || slot >= first_changed_) continue;
    }
    if (out.busy) break;
    const int token = NextOut(out.ahead >= 0 ? out.ahead : item);
    if (token < 0 || slot_of_[token] < first_changed_) break;
    const int maker = SourceOf(token);
    const double ready = maker < 0 ? 0.0 : times_[maker].passed;
    if (maker >= 0 && slot_of_[maker] > slot_of_[item]) break;
    if (ready >= lanes_[item].now_ns) break;
  }
  if (item >= 0) {
    at = times_[item];
    lanes = lanes_[item];
  }
  return item;
}

double SearchState::RunCoupledLanes(double limit_ns) {
  CoupledPass pass;
  const int before = RestartCoupled(pass.at, pass.lanes);
  if (TooLate(pass.at, limit_ns)) return kNever;
  pass.restart_slot = before < 0 ? -1 : slot_of_[before];
  pass.slot = pass.restart_slot + 1;
  if (before < 0) TakeIn(pass, -1);
  if (const CopyLane& out = pass.lanes.out; !out.busy) {
    TakeOut(pass, NextOut(out.ahead >= 0 ? out.ahead : before));
  }
  LanePair& lanes = pass.lanes;
  ItemTimes& at = pass.at;
  // Follows the lanes until one is past the slot; false: too late.
  const auto finish = [&](const CopyLane& lane, int slot) {
    if (lane.token < 0 || slot_of_[lane.token] > slot) return true;
    if (!lanes.out.busy && lanes.out.ready_ns == kNever) {
      TakeOut(pass, lanes.out.token);
    }
    while (lane.token >= 0 && slot_of_[lane.token] <= slot) {
      LOADLINE_CHECK(StepLanes(pass));
    }
    Stall(lanes.now_ns, at);
    return !TooLate(at, limit_ns);
  };
  int unlike = last_changed_;
  trial_begin_ = next(before);
  for (int item = trial_begin_; item >= 0; item = next_[item]) {
    const Item what = items_[item];
    pass.item = item;
    pass.slot = slot_of_[item];
    if (what.kind == ItemKind::kRun) {
      const int copy = SourceOf(item);
      if (copy >= 0 && !finish(lanes.in, slot_of_[copy])) return kNever;
      at.passed += static_cast<double>(model_.node_ns[what.id]);
    } else if (what.kind == ItemKind::kOut) {
      if (!finish(lanes.out, pass.slot)) return kNever;
    }
    trial_[item] = at;
    if (what.kind == ItemKind::kIn && lanes.in.token < 0) TakeIn(pass, item);
    if (lanes.out.ahead >= 0 && slot_of_[lanes.out.ahead] <= pass.slot) {
      lanes.out.ahead = -1;
    }
    trial_lanes_[item] = lanes;
    if (times_stale_) continue;
    const ItemTimes& old = times_[item];
    const bool same = Same(at.passed, old.passed);
    if (pass.slot > unlike && same && Same(at.out_free, old.out_free) &&
        Same(at.in_free, old.in_free) && SameLanes(lanes, lanes_[item])) {
      trial_end_ = next_[item];
      return end_ns_ > limit_ns ? kNever : end_ns_;
    }
    if (pass.slot <= last_changed_ || !same) {
      const int reach = ReachOf(item);
      const bool unread = what.kind == ItemKind::kIn && reach < 0;
      unlike = std::max(unlike, unread ? slot_count() : reach);
    }
  }
  trial_end_ = -1;
  pass.item = -1;
  pass.slot = slot_count();
  if (!finish(lanes.out, slot_count()) || !finish(lanes.in, slot_count())) {
    return kNever;
  }
  return at.passed > limit_ns ? kNever : at.passed;
}

}  // namespace loadline::planner
