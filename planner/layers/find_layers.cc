// Hashes every node with its neighbourhood, finds stretches of the given order
// whose hashes repeat, links stretches by the values that pass between them
// (backward stretch u reads what forward stretch c - u made), and checks edge
// by edge which layers are equal. Tested in find_layers_test.cc.
#include "planner/layers/find_layers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planner/schedule/mix.h"

namespace loadline::planner {
namespace {

class Finder {
 public:
  Finder(const Problem& problem, const ProblemIndex& index,
         const SearchTuning::Layers& tuning)
      : problem_(problem),
        index_(index),
        tuning_(tuning),
        node_count_(static_cast<int>(problem.nodes.size())) {}

  std::optional<Layers> Find() {
    HashNodes();
    FindRuns();
    LinkRuns();
    if (layers_.runs.empty()) return std::nullopt;
    AssignNodes();
    AssignValues();
    FindAlike();
    if (layers_.alike_upper - layers_.alike_lower < tuning_.least_stretches) {
      return std::nullopt;
    }
    for (Run& run : layers_.runs) FindAnchor(run);
    return std::move(layers_);
  }

 private:
  uint64_t HashValue(ValueId id) const {
    const Value& value = problem_.value(id);
    uint64_t hash = Mix(static_cast<uint64_t>(value.bytes), value.persistent);
    hash = Mix(hash, value.offload);
    hash = Mix(hash, index_.is_output[Index(id)]);
    hash = Mix(hash, index_.producer[Index(id)] >= 0);
    for (const Codec& codec : value.stash) {
      hash = Mix(hash, static_cast<uint64_t>(codec.bytes));
      hash = Mix(hash, static_cast<uint64_t>(codec.encode_ns));
      hash = Mix(hash, static_cast<uint64_t>(codec.decode_ns));
    }
    return hash;
  }

  uint64_t HashAlone(const Node& node) const {
    uint64_t hash = Mix(static_cast<uint64_t>(node.time_ns),
                        static_cast<uint64_t>(node.workspace_bytes));
    hash = Mix(hash, node.recompute);
    for (ValueId id : node.inputs) hash = Mix(hash, HashValue(id));
    hash = Mix(hash, node.inputs.size());
    for (ValueId id : node.outputs) hash = Mix(hash, HashValue(id));
    for (const Variant& variant : node.variants) {
      hash = Mix(hash, static_cast<uint64_t>(variant.time_ns));
      hash = Mix(hash, static_cast<uint64_t>(variant.workspace_bytes));
    }
    return Mix(hash, node.inplace.size());
  }

  void HashNodes() {
    for (const Node& node : problem_.nodes) hash_.push_back(HashAlone(node));
    for (int round = 0; round < tuning_.neighbourhood; ++round) {
      std::vector<uint64_t> next(hash_.size());
      for (int n = 0; n < node_count_; ++n) {
        const Node& node = problem_.nodes[n];
        uint64_t hash = hash_[n];
        for (ValueId id : node.inputs) {
          const int producer = index_.producer[Index(id)];
          hash = Mix(hash, producer < 0 ? 1 : hash_[producer]);
        }
        for (ValueId id : node.outputs) {
          uint64_t readers = 0;  // in any order
          for (NodeId reader : index_.consumers[Index(id)]) {
            readers += Mix(hash_[Index(reader)], 7);
          }
          hash = Mix(hash, readers);
        }
        next[n] = hash;
      }
      hash_ = std::move(next);
    }
  }

  // From each start the period whose run is longest.
  void FindRuns() {
    std::vector<int> next_alike(node_count_, -1);
    std::unordered_map<uint64_t, int> seen;
    for (int n = node_count_ - 1; n >= 0; --n) {
      const auto [at, fresh] = seen.emplace(hash_[n], n);
      if (!fresh) next_alike[n] = std::exchange(at->second, n);
    }
    for (int start = 0; start < node_count_;) {
      Run best;
      int other = next_alike[start];
      for (int tried = 0; tried < tuning_.most_periods && other >= 0;
           ++tried, other = next_alike[other]) {
        const int period = other - start;
        int end = other;
        while (end < node_count_ && hash_[end] == hash_[end - period]) ++end;
        const int count = (end - start) / period;
        if (count >= tuning_.least_stretches &&
            count * period > best.count * best.period) {
          best.start = start;
          best.period = period;
          best.count = count;
        }
      }
      if (best.count > 0) {
        found_.push_back(best);
        start += best.count * best.period;
      } else {
        ++start;
      }
    }
  }

  // The largest run numbers the layers; other runs get theirs from the values
  // that pass to or from linked runs.
  void LinkRuns() {
    int base = -1;
    for (size_t r = 0; r < found_.size(); ++r) {
      if (base < 0 || found_[r].count * found_[r].period >
                          found_[base].count * found_[base].period) {
        base = static_cast<int>(r);
      }
    }
    if (base < 0) return;
    std::vector<int> run_of(node_count_, -1);
    for (size_t r = 0; r < found_.size(); ++r) {
      const Run& run = found_[r];
      if (run.count < found_[base].count - tuning_.missing_stretches) continue;
      std::fill_n(run_of.begin() + run.start, run.count * run.period,
                  static_cast<int>(r));
    }
    found_[base].direction = 1;
    for (bool more = true; more;) {
      more = false;
      for (size_t r = 0; r < found_.size(); ++r) {
        if (found_[r].direction != 0) continue;
        more = Link(static_cast<int>(r), run_of) || more;
      }
    }
    int lowest = 0, highest = 0;
    for (const Run& run : found_) {
      if (run.direction == 0) continue;
      const int last = run.LayerOf(run.count - 1);
      lowest = std::min({lowest, run.first_layer, last});
      highest = std::max({highest, run.first_layer, last});
    }
    for (Run run : found_) {
      if (run.direction == 0) continue;
      run.first_layer -= lowest;
      layers_.runs.push_back(run);
    }
    layers_.count = highest - lowest + 1;
  }

  int StretchAt(int run, int node) const {
    return (node - found_[run].start) / found_[run].period;
  }

  // The direction and first layer that most edges to linked runs agree on.
  bool Link(int r, const std::vector<int>& run_of) {
    Run& run = found_[r];
    std::map<std::pair<int, int>, int> votes;
    const auto vote = [&](int node, int other) {
      const int linked = other < 0 ? -1 : run_of[other];
      if (linked < 0 || found_[linked].direction == 0) return;
      const int layer = found_[linked].LayerOf(StretchAt(linked, other));
      const int stretch = StretchAt(r, node);
      ++votes[{1, layer - stretch}];
      ++votes[{-1, layer + stretch}];
    };
    for (int n = run.start; n < run.start + run.count * run.period; ++n) {
      if (run_of[n] != r) return false;
      for (ValueId id : problem_.nodes[n].inputs) {
        vote(n, index_.producer[Index(id)]);
      }
      for (ValueId id : problem_.nodes[n].outputs) {
        for (NodeId reader : index_.consumers[Index(id)]) {
          vote(n, static_cast<int>(reader));
        }
      }
    }
    int most = 0;
    for (const auto& [which, count] : votes) {
      if (count <= most) continue;
      most = count;
      std::tie(run.direction, run.first_layer) = which;
    }
    if (most >= run.count - tuning_.missing_stretches) return true;
    run.direction = 0;
    return false;
  }

  void AssignNodes() {
    layers_.node_layer.assign(node_count_, -1);
    layers_.node_role.assign(node_count_, -1);
    layers_.node_run.assign(node_count_, -1);
    for (size_t r = 0; r < layers_.runs.size(); ++r) {
      Run& run = layers_.runs[r];
      const int first_role = static_cast<int>(layers_.nodes.size());
      run.first_role = first_role;
      layers_.nodes.resize(first_role + run.period,
                           std::vector<int>(layers_.count, -1));
      for (int i = 0; i < run.count * run.period; ++i) {
        const int node = run.start + i;
        const int layer = run.LayerOf(i / run.period);
        const int role = first_role + i % run.period;
        layers_.node_layer[node] = layer;
        layers_.node_role[node] = role;
        layers_.node_run[node] = static_cast<int>(r);
        layers_.nodes[role][layer] = node;
      }
    }
  }

  // A value belongs to the layer of its producer, an input of the step to that
  // of its first reader; a value that only one layer has belongs to none.
  void AssignValues() {
    const size_t value_count = problem_.values.size();
    layers_.value_layer.assign(value_count, -1);
    layers_.value_role.assign(value_count, -1);
    std::map<std::pair<int, int>, int> roles;  // (role of node, place)
    const auto assign = [&](ValueId id, int node, int place) {
      const auto [at, fresh] =
          roles.emplace(std::pair(layers_.node_role[node], place),
                        static_cast<int>(layers_.values.size()));
      if (fresh) {
        layers_.values.emplace_back(layers_.count, -1);
      }
      layers_.value_layer[Index(id)] = layers_.node_layer[node];
      layers_.value_role[Index(id)] = at->second;
      layers_.values[at->second][layers_.node_layer[node]] =
          static_cast<int>(id);
    };
    for (int n = 0; n < node_count_; ++n) {
      if (layers_.node_layer[n] < 0) continue;
      const Node& node = problem_.nodes[n];
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        assign(node.outputs[i], n, static_cast<int>(i));
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const size_t v = Index(node.inputs[i]);
        if (index_.producer[v] >= 0 || layers_.value_layer[v] >= 0) continue;
        assign(node.inputs[i], n, -1 - static_cast<int>(i));
      }
    }
    std::vector<char> repeats;  // by role
    for (const std::vector<int>& all : layers_.values) {
      repeats.push_back(all.size() - std::count(all.begin(), all.end(), -1) >
                        1);
    }
    for (size_t v = 0; v < value_count; ++v) {
      if (layers_.value_role[v] < 0 || repeats[layers_.value_role[v]]) continue;
      layers_.value_layer[v] = layers_.value_role[v] = -1;
    }
  }

  // Whether `after` is to `before` as one layer to the one before it.
  bool Follows(ValueId before, ValueId after) const {
    const size_t b = Index(before), a = Index(after);
    if (layers_.value_layer[b] < 0 || layers_.value_layer[a] < 0) {
      return before == after;
    }
    return layers_.value_role[b] == layers_.value_role[a] &&
           layers_.value_layer[b] + 1 == layers_.value_layer[a];
  }

  // Whether a layer is the one before it, shifted.
  bool LayerFollows(int layer) const {
    for (const std::vector<int>& role : layers_.nodes) {
      if (role[layer] < 0 || role[layer - 1] < 0) return false;
      const Node& before = problem_.nodes[role[layer - 1]];
      const Node& after = problem_.nodes[role[layer]];
      if (before.inputs.size() != after.inputs.size() ||
          before.outputs.size() != after.outputs.size() ||
          before.inplace.size() != after.inplace.size()) {
        return false;
      }
      for (size_t i = 0; i < after.inputs.size(); ++i) {
        if (!Follows(before.inputs[i], after.inputs[i])) return false;
      }
      for (size_t i = 0; i < after.inplace.size(); ++i) {
        if (!Follows(before.inplace[i].first, after.inplace[i].first) ||
            !Follows(before.inplace[i].second, after.inplace[i].second)) {
          return false;
        }
      }
    }
    return true;
  }

  // The longest stretch of layers that follow each other.
  void FindAlike() {
    int lower = 0;
    for (int layer = 1; layer <= layers_.count; ++layer) {
      if (layer < layers_.count && LayerFollows(layer)) continue;
      if (layer - lower > layers_.alike_upper - layers_.alike_lower) {
        layers_.alike_lower = lower;
        layers_.alike_upper = layer;
      }
      lower = layer;
    }
  }

  // The first position from which a path leads to the same position of the next
  // stretch.
  void FindAnchor(Run& run) const {
    const int first = run.start + run.count / 2 * run.period;
    std::vector<char> reached(2 * run.period);
    for (int place = 0; place < run.period && run.anchor < 0; ++place) {
      std::fill(reached.begin(), reached.end(), 0);
      reached[place] = 1;
      for (int i = place + 1; i <= place + run.period; ++i) {
        for (ValueId id : problem_.nodes[first + i - run.period].inputs) {
          const int from = index_.producer[Index(id)] - (first - run.period);
          if (from >= 0 && from < i && reached[from]) reached[i] = 1;
        }
      }
      if (reached[place + run.period]) run.anchor = place;
    }
  }

  const Problem& problem_;
  const ProblemIndex& index_;
  const SearchTuning::Layers& tuning_;
  const int node_count_;
  std::vector<uint64_t> hash_;
  std::vector<Run> found_;
  Layers layers_;
};

}  // namespace

std::optional<Layers> FindLayers(const Problem& problem,
                                 const ProblemIndex& index,
                                 const SearchTuning::Layers& tuning) {
  return Finder(problem, index, tuning).Find();
}

}  // namespace loadline::planner
