// Start orders of first runs. The given order is usually good; moving each
// update to the point where its last reader has run frees gradients early;
// list scheduling by change of live bytes helps on shuffled graphs. Tested in
// order_test.cc.
#include <algorithm>
#include <queue>
#include <tuple>

#include "planner/search/search.h"

namespace loadline::planner {
namespace {

// What runs before each node: producers of its inputs, and for an update every
// other reader of the old version. A schedule may run such a reader later; in a
// start order no two versions are alive at once.
struct Precedence {
  std::vector<std::vector<int>> after;  // by node: its successors
  std::vector<int> waits;               // by node: number of predecessors
};

Precedence FindPrecedence(const SearchModel& model) {
  Precedence edges;
  edges.after.resize(model.node_count);
  edges.waits.assign(model.node_count, 0);
  const auto add = [&](int before, int node) {
    if (before < 0 || before == node) return;
    edges.after[before].push_back(node);
    ++edges.waits[node];
  };
  for (int node = 0; node < model.node_count; ++node) {
    for (int v : model.reads[node]) {
      add(model.producer[v], node);
      if (model.Updater(v) != node) continue;
      for (NodeId reader : model.index.consumers[v]) {
        add(static_cast<int>(reader), node);
      }
    }
  }
  return edges;
}

bool IsUpdate(const SearchModel& model, int node) {
  return std::any_of(model.reads[node].begin(), model.reads[node].end(),
                     [&](int v) { return model.Updater(v) == node; });
}

Schedule FromOrder(const SearchModel& model, const std::vector<int>& order) {
  Schedule schedule = GivenOrder(model);
  for (int p = 0; p < model.node_count; ++p) {
    schedule.items[p] = {ItemKind::kRun, model.jobs_of[order[p]].front()};
  }
  return schedule;
}

// The given order, but nodes that only feed updates, and the updates, as soon
// as they can run.
Schedule EarlyUpdates(const SearchModel& model) {
  Precedence edges = FindPrecedence(model);
  std::vector<char> early(model.node_count, 0);
  for (int node = 0; node < model.node_count; ++node) {
    early[node] = IsUpdate(model, node);
  }
  std::vector<int> order;
  std::vector<char> done(model.node_count, 0);
  std::vector<int> ready;
  const auto run = [&](int first) {
    ready.assign(1, first);
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      if (done[node]) continue;
      done[node] = 1;
      order.push_back(node);
      for (int next : edges.after[node]) {
        if (--edges.waits[next] == 0 && early[next]) ready.push_back(next);
      }
    }
  };
  for (int node = 0; node < model.node_count; ++node) {
    if (!done[node]) run(node);
  }
  return FromOrder(model, order);
}

// Always the ready node that adds the fewest bytes; ties by given order.
Schedule FewestBytes(const SearchModel& model) {
  Precedence edges = FindPrecedence(model);
  std::vector<int> uses(model.value_count, 0);
  for (int node = 0; node < model.node_count; ++node) {
    for (int v : model.reads[node]) ++uses[v];
  }
  const auto change = [&](int node) {
    int64_t bytes = 0;
    for (int v : model.makes[node]) bytes += model.bytes[v];
    for (int v : model.reads[node]) {
      const bool dies = uses[v] == 1 && !model.is_output[v];
      if (dies && (model.chain_of[v] < 0 || model.Updater(v) == node)) {
        bytes -= model.bytes[v];
      }
    }
    return bytes;
  };
  std::vector<int> order, ready;
  for (int node = 0; node < model.node_count; ++node) {
    if (edges.waits[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    size_t best = 0;
    int64_t best_change = 0;
    for (size_t i = 0; i < ready.size(); ++i) {
      const int64_t bytes = change(ready[i]);
      if (i == 0 ||
          std::tie(bytes, ready[i]) < std::tie(best_change, ready[best])) {
        best = i;
        best_change = bytes;
      }
    }
    const int node = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    order.push_back(node);
    for (int v : model.reads[node]) --uses[v];
    for (int next : edges.after[node]) {
      if (--edges.waits[next] == 0) ready.push_back(next);
    }
  }
  return FromOrder(model, order);
}

}  // namespace

std::vector<Schedule> SeedOrders(const SearchModel& model) {
  std::vector<Schedule> orders = {GivenOrder(model)};
  const auto add = [&](Schedule order) {
    const bool known = std::any_of(
        orders.begin(), orders.end(),
        [&](const Schedule& other) { return other.items == order.items; });
    if (!known) orders.push_back(std::move(order));
  };
  if (model.tuning.orders.early_updates) add(EarlyUpdates(model));
  if (model.tuning.orders.fewest_bytes) add(FewestBytes(model));
  return orders;
}

}  // namespace loadline::planner
