// Coupled copy lanes of IncrementalLanes: copies out and copies in move bytes
// more slowly while both move. The pass goes through the sequence as the one
// for independent lanes does (incremental_lanes.cc), and follows the copy lanes
// only where compute waits for one, up to the end of the copy it waits for;
// compute stands still until then, so every copy that may start is known. The
// state of the lanes when compute passed an item is kept with the item. So a
// pass begins at the last item before the first change at which no changed copy
// out could have been under way, and ends where nothing differs any more.
// Tested in incremental_lanes_test.cc.
#include <cmath>

#include "planner/base/check.h"
#include "planner/base/never_ns.h"
#include "planner/search/incremental_lanes.h"

namespace loadline::planner {
namespace {

// Times that differ by less do by rounding only.
constexpr double kSameNs = 1e-4;

bool Same(double a, double b) { return a == b || std::abs(a - b) < kSameNs; }

}  // namespace

// Whether both go on alike.
bool IncrementalLanes::SameLanes(const LanePair& a, const LanePair& b) const {
  const auto same = [](const CopyLane& l, const CopyLane& m, double rate) {
    if (l.copy != m.copy || l.busy != m.busy || l.ahead != m.ahead) {
      return false;
    }
    return !l.busy || (Same(l.moves_from_ns, m.moves_from_ns) &&
                       Same(l.left_bytes / rate, m.left_bytes / rate));
  };
  return same(a.out, b.out, model_.d2h_bytes_per_ns) &&
         same(a.in, b.in, model_.h2d_bytes_per_ns) && Same(a.now_ns, b.now_ns);
}

// One pass, at `item`.
struct IncrementalLanes::CoupledPass {
  ItemTimes at;
  LanePair lanes;
  int restart_slot = -1;  // up to here the times are the committed ones
  int item = -1;
  int slot = 0;
};

// The first Out after the item.
int IncrementalLanes::NextOut(int item) const {
  while (item < 0 || sequence_.slot_of(item) <= last_changed_) {
    item = sequence_.next(item);
    if (item < 0 || sequence_.item(item).kind == ItemKind::kOut) return item;
  }
  return links_.committed_next_out(item);
}

// The first In after the item and before `end`; -1: none.
int IncrementalLanes::NextIn(int item, int end) const {
  for (item = sequence_.next(item); item >= 0 && item != end;
       item = sequence_.after(item)) {
    if (sequence_.item(item).kind == ItemKind::kIn) return item;
  }
  return -1;
}

// `copy` is the next of its lane. An Out can start once compute has passed the
// run that made its value, whether or not compute has come to the copy.
void IncrementalLanes::StartOut(CoupledPass& pass, int copy) const {
  CopyLane& lane = pass.lanes.out;
  lane.copy = copy;
  lane.busy = false;
  lane.ready_ns = kNeverNs;
  if (copy < 0) return;
  const int maker = links_.SourceOf(copy);
  if (maker >= 0 && sequence_.slot_of(maker) >= pass.slot) return;
  lane.ready_ns = std::max(
      pass.lanes.now_ns, maker < 0 ? 0.0 : PassedAt(maker, pass.restart_slot));
}

void IncrementalLanes::StartIn(CoupledPass& pass, int copy) const {
  CopyLane& lane = pass.lanes.in;
  lane.copy = copy;
  lane.busy = false;
  lane.ready_ns = kNeverNs;
  if (copy < 0) return;
  lane.ready_ns =
      std::max(pass.lanes.now_ns, PassedAt(copy, pass.restart_slot));
}

// Follows both lanes to the next start or end of a copy; false: there is none.
bool IncrementalLanes::StepLanes(CoupledPass& pass) const {
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
  if (next == kNeverNs) return false;
  // True if the copy has ended.
  const auto advance = [&](CopyLane& lane, double rate, double latency_ns,
                           double event) {
    if (lane.Moving(now)) {
      lane.left_bytes = std::max(0.0, lane.left_bytes - (next - now) * rate);
      return event <= next;
    }
    if (lane.busy || event > next) return false;
    lane.busy = true;
    lane.moves_from_ns = next + latency_ns;
    const int value = sequence_.item(lane.copy).id;
    lane.left_bytes = static_cast<double>(model_.problem->values[value].bytes);
    return false;
  };
  const bool out_ended =
      advance(lanes.out, out_rate, model_.out_latency_ns, out_event);
  const bool in_ended =
      advance(lanes.in, in_rate, model_.in_latency_ns, in_event);
  lanes.now_ns = next;
  ItemTimes& at = pass.at;
  if (out_ended) {
    const int copy = lanes.out.copy;
    at.out_idle += next - at.out_free - model_.out_ns[sequence_.item(copy).id];
    at.out_free = next;
    StartOut(pass, NextOut(copy));
    lanes.out.ahead = copy;
  }
  if (in_ended) {
    const int copy = lanes.in.copy;
    at.in_idle += next - at.in_free - model_.in_ns[sequence_.item(copy).id];
    at.in_free = next;
    StartIn(pass, NextIn(copy, pass.item));
  }
  return true;
}

// The item after which to begin; -1: before the first. An Out that is changed
// must not have been started, nor could it have been.
int IncrementalLanes::RestartCoupled(ItemTimes& at, LanePair& lanes) const {
  if (stale_) return -1;
  int item = sequence_.ItemBefore(first_changed_);
  for (; item >= 0; item = sequence_.before(item)) {
    const CopyLane& out = lanes_[item].out;
    const int started = out.busy ? out.copy : out.ahead;
    if (started >= 0) {
      const int slot = sequence_.slot_of(started);
      if (slot < 0 || slot >= first_changed_) continue;
    }
    if (out.busy) break;
    const int copy = NextOut(out.ahead >= 0 ? out.ahead : item);
    if (copy < 0 || sequence_.slot_of(copy) < first_changed_) break;
    const int maker = links_.SourceOf(copy);
    const double ready = maker < 0 ? 0.0 : times_[maker].passed;
    if (maker >= 0 && sequence_.slot_of(maker) > sequence_.slot_of(item)) break;
    if (ready >= lanes_[item].now_ns) break;
  }
  if (item >= 0) {
    at = times_[item];
    lanes = lanes_[item];
  }
  return item;
}

double IncrementalLanes::RunCoupled(double limit_ns) {
  const ItemSequence& sequence = sequence_;
  const WaitLinks& links = links_;
  CoupledPass pass;
  const int before = RestartCoupled(pass.at, pass.lanes);
  if (TooLate(pass.at, limit_ns)) return kNeverNs;
  pass.restart_slot = before < 0 ? -1 : sequence.slot_of(before);
  pass.slot = pass.restart_slot + 1;
  if (before < 0) StartIn(pass, -1);
  if (const CopyLane& out = pass.lanes.out; !out.busy) {
    StartOut(pass, NextOut(out.ahead >= 0 ? out.ahead : before));
  }
  LanePair& lanes = pass.lanes;
  ItemTimes& at = pass.at;
  // Follows the lanes until one is past the slot; false: too late.
  const auto finish = [&](const CopyLane& lane, int slot) {
    if (lane.copy < 0 || sequence.slot_of(lane.copy) > slot) return true;
    if (!lanes.out.busy && lanes.out.ready_ns == kNeverNs) {
      StartOut(pass, lanes.out.copy);
    }
    while (lane.copy >= 0 && sequence.slot_of(lane.copy) <= slot) {
      LOADLINE_CHECK(StepLanes(pass));
    }
    Stall(lanes.now_ns, at);
    return !TooLate(at, limit_ns);
  };
  int unlike = last_changed_;
  trial_begin_ = sequence.next(before);
  for (int item = trial_begin_; item >= 0; item = sequence.after(item)) {
    const Item what = sequence.item(item);
    pass.item = item;
    pass.slot = sequence.slot_of(item);
    if (what.kind == ItemKind::kRun) {
      const int copy = links.SourceOf(item);
      if (copy >= 0 && !finish(lanes.in, sequence.slot_of(copy)))
        return kNeverNs;
      at.passed += static_cast<double>(model_.node_ns[what.id]);
    } else if (what.kind == ItemKind::kOut) {
      if (!finish(lanes.out, pass.slot)) return kNeverNs;
    }
    trial_[item] = at;
    if (what.kind == ItemKind::kIn && lanes.in.copy < 0) StartIn(pass, item);
    if (lanes.out.ahead >= 0 &&
        sequence.slot_of(lanes.out.ahead) <= pass.slot) {
      lanes.out.ahead = -1;
    }
    trial_lanes_[item] = lanes;
    if (stale_) continue;
    const ItemTimes& old = times_[item];
    const bool same = Same(at.passed, old.passed);
    if (pass.slot > unlike && same && Same(at.out_free, old.out_free) &&
        Same(at.in_free, old.in_free) && SameLanes(lanes, lanes_[item])) {
      trial_end_ = sequence.after(item);
      return end_ns_ > limit_ns ? kNeverNs : end_ns_;
    }
    if (pass.slot <= last_changed_ || !same) {
      const int reach = links.ReachOf(item);
      const bool unread = what.kind == ItemKind::kIn && reach < 0;
      unlike = std::max(unlike, unread ? sequence.slot_count() : reach);
    }
  }
  trial_end_ = -1;
  pass.item = -1;
  pass.slot = sequence.slot_count();
  if (!finish(lanes.out, sequence.slot_count()) ||
      !finish(lanes.in, sequence.slot_count())) {
    return kNeverNs;
  }
  return at.passed > limit_ns ? kNeverNs : at.passed;
}

}  // namespace loadline::planner
