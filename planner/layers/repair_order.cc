// A topological order that prefers the given one. Tested in
// repair_order_test.cc.
#include "planner/layers/repair_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

class OrderRepair {
 public:
  OrderRepair(const SearchModel& model, const Schedule& schedule)
      : model_(model),
        schedule_(schedule),
        waits_(schedule.items.size(), 0),
        run_at_(model.job_count(), -1),
        out_at_(model.representation_count(), -1),
        in_at_(model.representation_count(), -1) {}

  // Empty if the items wait for each other in a circle.
  std::vector<Item> Order() {
    const std::vector<Item>& items = schedule_.items;
    const int count = static_cast<int>(items.size());
    for (int i = count - 1; i >= 0; --i) At(items[i]) = i;
    for (int i = 0; i < count; ++i) FindNeeds(i);
    GroupEdges();
    std::vector<Item> order;
    order.reserve(items.size());
    // Items that are ready now, and were not when `next` passed them.
    std::priority_queue<int, std::vector<int>, std::greater<>> late;
    for (int next = 0; next < count || !late.empty();) {
      int i = next;
      if (late.empty()) {
        ++next;
        if (waits_[i] > 0) continue;
      } else {
        i = late.top();
        late.pop();
      }
      order.push_back(items[i]);
      for (size_t e = after_begin_[i]; e < after_begin_[i + 1]; ++e) {
        if (--waits_[after_[e]] == 0 && after_[e] < next) late.push(after_[e]);
      }
    }
    if (static_cast<int>(order.size()) < count) order.clear();
    return order;
  }

 private:
  // Its first position; the variants of a node share it.
  int& At(const Item& item) {
    if (item.kind == ItemKind::kRun) {
      const int node = model_.jobs[item.id].node;
      return run_at_[node >= 0 ? node : item.id];
    }
    return item.kind == ItemKind::kOut ? out_at_[item.id] : in_at_[item.id];
  }

  void Need(int before, int after) {
    if (before < 0 || before == after) return;
    edges_.emplace_back(before, after);
    ++waits_[after];
  }

  // By the item that comes before.
  void GroupEdges() {
    after_begin_.assign(waits_.size() + 1, 0);
    for (const auto& [before, after] : edges_) ++after_begin_[before + 1];
    std::partial_sum(after_begin_.begin(), after_begin_.end(),
                     after_begin_.begin());
    after_.resize(edges_.size());
    std::vector<size_t> place(after_begin_.begin(), after_begin_.end() - 1);
    for (const auto& [before, after] : edges_) after_[place[before]++] = after;
  }

  // The first run of what makes it (a decode makes it only again).
  int MadeAt(int representation) const {
    const int job = model_.producer[representation];
    return job < 0 ? -1 : run_at_[job];
  }

  // A version is not accessed after its Overwriter.
  void NeedForOverwriter(int representation, int i) {
    const int node = model_.Overwriter(model_.value_of[representation]);
    if (node >= 0) Need(i, run_at_[node]);
  }

  void FindNeeds(int i) {
    const Item& item = schedule_.items[i];
    if (item.kind != ItemKind::kRun) {
      const bool out = item.kind == ItemKind::kOut;
      Need(out ? MadeAt(item.id) : out_at_[item.id], i);
      NeedForOverwriter(item.id, i);
      return;
    }
    for (int v : model_.reads[item.id]) {
      Need(MadeAt(v), i);
      if (model_.FirstVersion(v) && schedule_.host_home[model_.chain_of[v]]) {
        Need(in_at_[v], i);
      }
      NeedForOverwriter(v, i);
    }
    for (int v : model_.makes[item.id]) NeedForOverwriter(v, i);
  }

  const SearchModel& model_;
  const Schedule& schedule_;
  std::vector<int> waits_;                  // by item
  std::vector<std::pair<int, int>> edges_;  // (before, after)
  std::vector<size_t> after_begin_;         // by item, into after_
  std::vector<int> after_;
  std::vector<int> run_at_;          // by job
  std::vector<int> out_at_, in_at_;  // by representation
};

// Removes copies back that nothing reads, then copies out that nothing copies
// back.
void DropUseless(const SearchModel& model, Schedule& schedule) {
  // Whether the device instance is read later, the host one copied back.
  std::vector<char> read(model.representation_count()),
      copied(model.representation_count());
  for (int v = 0; v < model.representation_count(); ++v) {
    const int chain = model.chain_of[v];
    const bool home = chain >= 0 && schedule.host_home[chain] != 0;
    read[v] = !home && (model.is_output[v] || model.LastVersion(v));
    copied[v] = home && model.LastVersion(v);
  }
  std::vector<Item> kept;
  for (size_t i = schedule.items.size(); i-- > 0;) {
    const Item& item = schedule.items[i];
    if (item.kind == ItemKind::kRun) {
      for (int v : model.makes[item.id]) read[v] = 0;
      for (int v : model.reads[item.id]) read[v] = 1;
    } else if (item.kind == ItemKind::kOut) {
      if (!copied[item.id]) continue;
      read[item.id] = 1;
    } else {
      if (!read[item.id]) continue;
      read[item.id] = 0;
      copied[item.id] = 1;
    }
    kept.push_back(item);
  }
  schedule.items.assign(kept.rbegin(), kept.rend());
}

}  // namespace

std::optional<Schedule> RepairOrder(const SearchModel& model,
                                    Schedule schedule) {
  schedule.items = OrderRepair(model, schedule).Order();
  DropUseless(model, schedule);
  if (!FindLifetimes(model, schedule).valid) return std::nullopt;
  return schedule;
}

}  // namespace loadline::planner
