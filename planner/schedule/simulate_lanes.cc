// Times of the three lanes. With independent copy lanes one pass in sequence
// order is exact: an Out starts when its lane is free and its value is made, an
// In when its lane is free and compute has passed it. With coupled lanes the
// order of events matters, so an event simulation follows them. Tested in
// simulate_lanes_test.cc and, against Replay, in search_state_test.cc.
#include <algorithm>

#include "planner/base/never_ns.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

// The state of one copy lane.
struct CopyLane {
  size_t next = 0;  // the copy that runs, or that starts next
  bool busy = false;
  double moves_from_ns = 0;  // end of the latency
  double left = 0;           // bytes
  bool Moving(double now) const { return busy && now >= moves_from_ns; }
};

}  // namespace

double LaneSimulator::Run(const std::vector<Item>& items,
                          std::vector<double>* passed_ns) {
  if (passed_ns != nullptr) passed_ns->resize(items.size());
  return model_.bidirectional < 1 ? RunCoupled(items, passed_ns)
                                  : RunIndependent(items, passed_ns);
}

double LaneSimulator::RunIndependent(const std::vector<Item>& items,
                                     std::vector<double>* passed_ns) {
  ready_ns_.assign(model_.representation_count(), 0);
  const bool stops = model_.copies_exclude_compute;
  double now = 0, out_free = 0, in_free = 0;
  for (size_t p = 0; p < items.size(); ++p) {
    const int id = items[p].id;
    if (items[p].kind == ItemKind::kRun) {
      for (int v : model_.reads[id]) now = std::max(now, ready_ns_[v]);
      now += static_cast<double>(model_.node_ns[id]);
      for (int v : model_.makes[id]) ready_ns_[v] = now;
    } else if (items[p].kind == ItemKind::kOut) {
      const double from = stops ? now : ready_ns_[id];
      out_free = std::max(out_free, from) + model_.out_ns[id];
      now = std::max(now, out_free);
    } else {
      in_free = std::max(in_free, now) + model_.in_ns[id];
      ready_ns_[id] = in_free;
      if (stops) now = in_free;
    }
    if (passed_ns != nullptr) (*passed_ns)[p] = now;
  }
  return std::max({now, out_free, in_free});
}

void LaneSimulator::Bind(const std::vector<Item>& items) {
  outs_.clear();
  ins_.clear();
  wait_in_.assign(items.size(), -1);
  from_run_.assign(model_.representation_count(), -1);
  from_in_.assign(model_.representation_count(), -1);
  for (size_t p = 0; p < items.size(); ++p) {
    const int id = items[p].id;
    const int position = static_cast<int>(p);
    if (items[p].kind == ItemKind::kRun) {
      for (int v : model_.reads[id]) {
        wait_in_[p] = std::max(wait_in_[p], from_in_[v]);
      }
      for (int v : model_.makes[id]) {
        from_run_[v] = position;
        from_in_[v] = -1;
      }
      continue;
    }
    LaneOp op;
    op.bytes = static_cast<double>(model_.problem->values[id].bytes);
    op.item = position;
    if (items[p].kind == ItemKind::kOut) {
      op.after_run = from_run_[id];
      op.after_in = from_in_[id];
      wait_in_[p] = static_cast<int>(outs_.size());  // its own index
      outs_.push_back(op);
    } else {
      from_run_[id] = -1;
      from_in_[id] = static_cast<int>(ins_.size());
      ins_.push_back(op);
    }
  }
}

double LaneSimulator::RunCoupled(const std::vector<Item>& items,
                                 std::vector<double>* passed_ns) {
  Bind(items);
  CopyLane out, in;
  double now = 0, run_end = kNeverNs;
  size_t position = 0;
  while (true) {
    // Start and pass everything that is ready now.
    for (bool moved = true; moved;) {
      moved = false;
      while (position < items.size() && run_end == kNeverNs) {
        const Item& item = items[position];
        if (item.kind == ItemKind::kRun) {
          if (wait_in_[position] >= static_cast<int>(in.next)) break;
          run_end = now + static_cast<double>(model_.node_ns[item.id]);
          break;
        }
        if (item.kind == ItemKind::kOut &&
            wait_in_[position] >= static_cast<int>(out.next)) {
          break;
        }
        if (passed_ns != nullptr) (*passed_ns)[position] = now;
        ++position;
        moved = true;
      }
      if (!out.busy && out.next < outs_.size() &&
          outs_[out.next].after_run < static_cast<int>(position) &&
          outs_[out.next].after_in < static_cast<int>(in.next)) {
        out.busy = true;
        out.moves_from_ns = now + model_.out_latency_ns;
        out.left = outs_[out.next].bytes;
      }
      if (!in.busy && in.next < ins_.size() &&
          ins_[in.next].item < static_cast<int>(position)) {
        in.busy = true;
        in.moves_from_ns = now + model_.in_latency_ns;
        in.left = ins_[in.next].bytes;
      }
    }
    const bool both = out.Moving(now) && in.Moving(now);
    const double factor = both ? model_.bidirectional : 1.0;
    const double out_rate = model_.d2h_bytes_per_ns * factor;
    const double in_rate = model_.h2d_bytes_per_ns * factor;
    const auto next_event = [&](const CopyLane& lane, double rate) {
      if (!lane.busy) return kNeverNs;
      return lane.Moving(now) ? now + lane.left / rate : lane.moves_from_ns;
    };
    const double out_event = next_event(out, out_rate);
    const double in_event = next_event(in, in_rate);
    const double next = std::min({run_end, out_event, in_event});
    if (next == kNeverNs) return now;
    const auto advance = [&](CopyLane& lane, double rate, double event) {
      if (!lane.Moving(now)) return;
      if (event <= next) {
        lane.busy = false;
        ++lane.next;
      } else {
        lane.left = std::max(0.0, lane.left - (next - now) * rate);
      }
    };
    advance(out, out_rate, out_event);
    advance(in, in_rate, in_event);
    now = next;
    if (run_end <= now) {
      run_end = kNeverNs;
      if (passed_ns != nullptr) (*passed_ns)[position] = now;
      ++position;
    }
  }
}

Times FindTimes(const SearchModel& model, const Schedule& schedule) {
  Times times;
  LaneSimulator lanes(model);
  times.lanes_ns = lanes.Run(schedule.items, &times.passed_ns);
  times.step_ns = times.lanes_ns;
  for (const Item& item : schedule.items) {
    if (item.kind == ItemKind::kRun) {
      times.compute_ns += model.node_ns[item.id];
    } else {
      times.step_ns += model.copy_overhead_ns;
    }
  }
  return times;
}

}  // namespace loadline::planner
