// Start orders of first runs. The given order is usually good; moving each
// update to the point where its last reader has run frees gradients early;
// list scheduling by change of live bytes helps on shuffled graphs. Tested in
// order_test.cc.
#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "planner/search/search.h"

namespace loadline::planner {
namespace {

// What runs before each node: producers of its inputs, and for an update every
// other reader of the old version. A schedule may run such a reader later; in a
// start order no two versions are alive at once.
struct OrderEdges {
  std::vector<std::vector<int>> after;  // by node: its successors
  std::vector<int> waits;               // by node: number of predecessors
};

OrderEdges FindOrderEdges(const SearchModel& model) {
  OrderEdges edges;
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
  OrderEdges edges = FindOrderEdges(model);
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

// List scheduling: always the ready node that adds the fewest bytes; ties by
// given order. A node's change of bytes only falls, namely when an input's last
// other reader has run; then the node is queued again with the new change.
class FewestBytesOrder {
 public:
  explicit FewestBytesOrder(const SearchModel& model)
      : model_(model), edges_(FindOrderEdges(model)), uses_(model.value_count) {
    for (int node = 0; node < model.node_count; ++node) {
      for (int v : model.reads[node]) ++uses_[v];
    }
  }

  Schedule Find() {
    for (int node = 0; node < model_.node_count; ++node) {
      if (edges_.waits[node] == 0) Queue(node);
    }
    std::vector<int> order;
    std::vector<char> done(model_.node_count, 0);
    while (!ready_.empty()) {
      const int node = ready_.top().second;
      ready_.pop();
      if (done[node]) continue;
      done[node] = 1;
      order.push_back(node);
      for (int v : model_.reads[node]) {
        if (--uses_[v] == 1) QueueLastReader(v, done);
      }
      for (int next : edges_.after[node]) {
        if (--edges_.waits[next] == 0) Queue(next);
      }
    }
    return FromOrder(model_, order);
  }

 private:
  int64_t ChangeBytes(int node) const {
    int64_t bytes = 0;
    for (int v : model_.makes[node]) bytes += model_.bytes[v];
    for (int v : model_.reads[node]) {
      const bool dies = uses_[v] == 1 && !model_.is_output[v];
      if (dies && (model_.chain_of[v] < 0 || model_.Updater(v) == node)) {
        bytes -= model_.bytes[v];
      }
    }
    return bytes;
  }

  void Queue(int node) { ready_.emplace(ChangeBytes(node), node); }

  void QueueLastReader(int value, const std::vector<char>& done) {
    for (NodeId id : model_.index.consumers[value]) {
      const int node = static_cast<int>(id);
      if (!done[node] && edges_.waits[node] == 0) Queue(node);
    }
  }

  const SearchModel& model_;
  OrderEdges edges_;
  std::vector<int> uses_;  // by value: readers that have not run
  using BytesAndNode = std::pair<int64_t, int>;
  std::priority_queue<BytesAndNode, std::vector<BytesAndNode>,
                      std::greater<BytesAndNode>>
      ready_;
};

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
  if (model.tuning.orders.fewest_bytes) add(FewestBytesOrder(model).Find());
  return orders;
}

}  // namespace loadline::planner
