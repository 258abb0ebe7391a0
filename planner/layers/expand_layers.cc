// The first runs of the anchors (find_layers.h) have the same order in every
// schedule: they divide it into intervals, numbered alike in the few layers and
// in all. An item keeps its distance, in intervals, from the item that it
// serves: a rerun or a copy back from its first reader, a copy out from the run
// that makes the value, an update from its last input. Such chains end at a
// first run within its own stretch, the item's root. Within an interval an item
// keeps the number of first runs before it. An item that then stands before
// something it needs is moved behind it (repair_order.h). Tested in
// expand_layers_test.cc.
#include "planner/layers/expand_layers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/layers/map_item.h"
#include "planner/layers/repair_order.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

// The anchors of all runs in the given order, and where each layer's is.
class Spine {
 public:
  explicit Spine(const Layers& layers) {
    of_.resize(layers.runs.size());
    for (size_t r = 0; r < layers.runs.size(); ++r) {
      const Run& run = layers.runs[r];
      if (run.anchor < 0) continue;
      const std::vector<int>& nodes = layers.nodes[run.first_role + run.anchor];
      Part& part = of_[r];
      part.first = static_cast<int>(anchors_.size());
      part.direction = run.direction;
      for (int i = 0; i < layers.count; ++i) {
        const int layer = run.direction > 0 ? i : layers.count - 1 - i;
        if (nodes[layer] < 0) continue;
        if (part.count++ == 0) part.first_layer = layer;
        anchors_.push_back(nodes[layer]);
      }
    }
  }

  int count() const { return static_cast<int>(anchors_.size()); }
  const std::vector<int>& anchors() const { return anchors_; }
  bool Has(int run) const { return run >= 0 && of_[run].count > 0; }
  // The interval of a layer, the nearest one where it has none.
  int At(int run, int layer) const {
    const Part& part = of_[run];
    return part.first + std::clamp(part.direction * (layer - part.first_layer),
                                   0, part.count - 1);
  }
  // The run of an interval; -1: before the first.
  int RunOf(int interval) const {
    for (size_t r = 0; r < of_.size(); ++r) {
      if (interval >= of_[r].first && interval < of_[r].first + of_[r].count) {
        return static_cast<int>(r);
      }
    }
    return -1;
  }
  // The interval that corresponds to `at` in another spine of the same runs: as
  // far from the nearer end of its run.
  int Translate(const Spine& other, int at) const {
    const int run = other.RunOf(at);
    if (run < 0) return -1;
    const Part& from = other.of_[run];
    const Part& to = of_[run];
    const int distance = at - from.first;
    if (2 * distance < from.count) return to.first + distance;
    return to.first + to.count - (from.count - distance);
  }

 private:
  struct Part {
    int first = 0, count = 0, first_layer = 0, direction = 1;
  };
  std::vector<Part> of_;  // by run
  std::vector<int> anchors_;
};

class LayerExpander {
 public:
  LayerExpander(const LayeredModel& all, const LayeredModel& few,
                const CoarseProblem& shrunk, const std::vector<int>& match)
      : all_(all),
        few_(few),
        shrunk_(shrunk),
        spine_(*all.layers),
        few_spine_(*few.layers),
        like_(few.layers->count) {
    for (size_t layer = 0; layer < match.size(); ++layer) {
      like_[match[layer]].push_back(static_cast<int>(layer));
    }
  }

  std::optional<Schedule> Run(const Schedule& schedule) {
    if (few_spine_.count() == 0) return std::nullopt;
    items_ = &schedule.items;
    lives_ = FindLifetimes(*few_.model, schedule);
    if (!lives_.valid || !FindIntervals()) return std::nullopt;
    FindRoots();
    PlaceItems();
    std::vector<Item> items;
    for (const PlacedItem& placed : placed_) items.push_back(placed.item);
    return RepairOrder(*all_.model, {std::move(items), ExpandHomes(schedule)});
  }

 private:
  // Where an item's distance is counted from; layer -1: an interval alone.
  struct Root {
    int run = -1;
    int layer = -1;
    int interval = -1;  // of the few
  };
  struct PlacedItem {
    int interval;
    int runs_before;  // twice the first runs before it in its interval
    int position;     // among the few
    int layer;
    Item item;
  };

  const Item& ItemAt(int position) const { return (*items_)[position]; }
  int Length() const { return static_cast<int>(items_->size()); }

  Subject SubjectAt(int position) const {
    return SubjectOf(*few_.model, ItemAt(position));
  }

  // A first run within the intervals of its own run, not moved to another's.
  bool OnSpine(int position) const {
    if (!first_run_[position]) return false;
    const int run = few_.layers->node_run[SubjectAt(position).node];
    return few_spine_.Has(run) && few_spine_.RunOf(interval_[position]) == run;
  }

  bool FindIntervals() {
    std::vector<int> number(few_.model->node_count, -1);
    for (int i = 0; i < few_spine_.count(); ++i) {
      number[few_spine_.anchors()[i]] = i;
    }
    std::vector<char> seen(few_.model->node_count, 0);
    first_run_.assign(Length(), 0);
    interval_.assign(Length(), -1);
    runs_before_.assign(Length(), 0);
    int interval = -1, runs = 0;
    for (int p = 0; p < Length(); ++p) {
      const int node = SubjectAt(p).node;
      if (node >= 0 && !seen[node]) {
        seen[node] = first_run_[p] = 1;
        if (number[node] >= 0) {
          if (number[node] != interval + 1) return false;
          ++interval;
          runs = 0;
        }
      }
      interval_[p] = interval;
      const bool on_spine = OnSpine(p);
      runs_before_[p] = 2 * runs + on_spine;
      runs += on_spine;
    }
    return true;
  }

  // The position of the item that an item serves: itself for a first run on the
  // spine, -1 if there is none.
  int ServedBy(int position) const {
    const Item& item = ItemAt(position);
    if (OnSpine(position)) return position;
    const Job* job =
        item.kind == ItemKind::kRun ? &few_.model->jobs[item.id] : nullptr;
    const bool encode = job != nullptr && job->node < 0 && !job->decodes;
    if (item.kind == ItemKind::kOut || encode) {
      return lives_.instances[lives_.reads[position][0]].made_at;
    }
    if (first_run_[position] &&
        !few_spine_.Has(few_.layers->node_run[job->node])) {
      int last = -1;
      for (int read : lives_.reads[position]) {
        last = std::max(last, lives_.instances[read].made_at);
      }
      return last;
    }
    int first = -1;
    for (int made : lives_.makes[position]) {
      const int reader = first_reader_[made];
      if (reader >= 0 && (first < 0 || reader < first)) first = reader;
    }
    return first;
  }

  void FindRoots() {
    first_reader_.assign(lives_.instances.size(), -1);
    for (int p = Length() - 1; p >= 0; --p) {
      if (ItemAt(p).kind == ItemKind::kOut) continue;
      for (int read : lives_.reads[p]) first_reader_[read] = p;
    }
    std::vector<int> served_by(Length());
    for (int p = 0; p < Length(); ++p) {
      const int next = ServedBy(p);
      served_by[p] = next < 0 ? p : next;
    }
    root_.assign(Length(), {});
    for (int p = 0; p < Length(); ++p) {
      int at = p;
      // A circle is left after as many steps as there are items.
      for (int steps = 0; steps < Length() && served_by[at] != at; ++steps) {
        at = served_by[at];
      }
      Root& root = root_[p];
      root.interval = interval_[at];
      if (!OnSpine(at)) continue;
      root.run = few_.layers->node_run[SubjectAt(at).node];
      root.layer = few_.layers->node_layer[SubjectAt(at).node];
      root.interval = few_spine_.At(root.run, root.layer);
    }
  }

  void PlaceItems() {
    for (int p = 0; p < Length(); ++p) {
      const Root& root = root_[p];
      const int from = interval_[p] - root.interval;
      const Subject subject = SubjectAt(p);
      const bool node = subject.node >= 0;
      const int layer = node ? few_.layers->node_layer[subject.node]
                             : few_.layers->value_layer[subject.value];
      if (layer < 0) {
        Add(p, spine_.Translate(few_spine_, interval_[p]), -1,
            {node ? shrunk_.node_of[subject.node] : -1,
             node ? -1 : shrunk_.value_of[subject.value]});
        continue;
      }
      const std::vector<int>& role =
          node ? all_.layers->nodes[few_.layers->node_role[subject.node]]
               : all_.layers->values[few_.layers->value_role[subject.value]];
      for (int to : like_[layer]) {
        if (role[to] < 0) continue;
        const int start = root.run >= 0
                              ? spine_.At(root.run, to + root.layer - layer)
                              : spine_.Translate(few_spine_, root.interval);
        Add(p, std::clamp(start + from, -1, spine_.count() - 1), to,
            {node ? role[to] : -1, node ? -1 : role[to]});
      }
    }
    std::sort(placed_.begin(), placed_.end(),
              [](const PlacedItem& a, const PlacedItem& b) {
                return std::tie(a.interval, a.runs_before, a.position,
                                a.layer) <
                       std::tie(b.interval, b.runs_before, b.position, b.layer);
              });
  }

  void Add(int position, int interval, int layer, Subject subject) {
    const Item item =
        MapItem(*few_.model, ItemAt(position), *all_.model, subject);
    if (item.id < 0) return;
    placed_.push_back(
        {interval, runs_before_[position], position, layer, item});
  }

  std::vector<char> ExpandHomes(const Schedule& schedule) const {
    const SearchModel& all = *all_.model;
    std::vector<char> homes(all.chains.size(), 0);
    for (size_t c = 0; c < all.chains.size(); ++c) {
      const int value = all.chains[c].versions.front();
      const int layer = all_.layers->value_layer[value];
      int few = -1;
      if (layer < 0) {
        few = shrunk_.value_left[value];
      } else {
        const std::vector<int>& role =
            few_.layers->values[all_.layers->value_role[value]];
        for (size_t j = 0; j < like_.size() && few < 0; ++j) {
          if (std::binary_search(like_[j].begin(), like_[j].end(), layer)) {
            few = role[j];
          }
        }
      }
      if (few < 0) continue;
      homes[c] = schedule.host_home[few_.model->chain_of[few]];
    }
    return homes;
  }

  const LayeredModel all_, few_;
  const CoarseProblem& shrunk_;
  const Spine spine_, few_spine_;
  std::vector<std::vector<int>> like_;  // by layer of the few: all like it
  const std::vector<Item>* items_ = nullptr;
  Lifetimes lives_;
  std::vector<char> first_run_;    // by position
  std::vector<int> interval_;      // by position
  std::vector<int> runs_before_;   // by position, see PlacedItem
  std::vector<int> first_reader_;  // by instance
  std::vector<Root> root_;         // by position
  std::vector<PlacedItem> placed_;
};

}  // namespace

std::vector<int> MatchLayers(const Layers& all, const Layers& few, int blocks) {
  const int cut = all.count - few.count;
  const int lower = few.alike_lower + 1;
  const int few_count = few.alike_upper - 1 - lower;
  const int all_count = few_count + cut;
  std::vector<int> match(all.count);
  for (int layer = 0; layer < all.count; ++layer) {
    const int inside = layer - lower;
    if (inside < 0 || inside >= all_count) {
      match[layer] = inside < 0 ? layer : layer - cut;
      continue;
    }
    const auto from = [&](int count, int block) {
      return static_cast<int>(static_cast<int64_t>(count) * block / blocks);
    };
    int block = 0;
    while (from(all_count, block + 1) <= inside) ++block;
    const int first = from(few_count, block);
    match[layer] = lower + first +
                   (inside - from(all_count, block)) %
                       (from(few_count, block + 1) - first);
  }
  return match;
}

std::optional<Schedule> ExpandSchedule(const LayeredModel& all,
                                       const LayeredModel& few,
                                       const CoarseProblem& shrunk,
                                       const std::vector<int>& match,
                                       const Schedule& schedule) {
  return LayerExpander(all, few, shrunk, match).Run(schedule);
}

}  // namespace loadline::planner
