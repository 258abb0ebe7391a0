// Removes layers [cut_lower, cut_upper). Below the cut, a value of a removed
// layer is replaced by that of the same role just above the cut; above it, by
// that just below. Tested in shrink_test.cc.
#include "planner/layers/shrink.h"

#include <algorithm>

namespace loadline::planner {
namespace {

class Coarsening {
 public:
  Coarsening(const Problem& problem, const Layers& layers, int layers_left)
      : problem_(problem),
        layers_(layers),
        cut_count_(layers.count - layers_left) {
    const int alike = layers.alike_upper - layers.alike_lower;
    cut_lower_ = layers.alike_lower + (alike - cut_count_) / 2;
    cut_upper_ = cut_lower_ + cut_count_;
    possible_ = cut_count_ > 0 && cut_lower_ - layers.alike_lower >= 2 &&
                layers.alike_upper - cut_upper_ >= 2;
  }

  std::optional<CoarseProblem> Run() {
    if (!possible_) return std::nullopt;
    KeepValues();
    if (!KeepNodes()) return std::nullopt;
    ScaleHost();
    KeepLayers();
    if (!ValidateProblem(shrunk_.problem).ok()) return std::nullopt;
    return std::move(shrunk_);
  }

 private:
  bool Cut(int layer) const {
    return layer >= cut_lower_ && layer < cut_upper_;
  }
  int LayerLeft(int layer) const {
    return layer < cut_upper_ ? layer : layer - cut_count_;
  }

  void KeepValues() {
    const Problem& all = problem_;
    Problem& left = shrunk_.problem;
    left.name = all.name;
    left.time_unit = all.time_unit;
    left.addresses = all.addresses;
    left.alignment_bytes = all.alignment_bytes;
    left.machine = all.machine;
    shrunk_.value_left.assign(all.values.size(), -1);
    for (size_t v = 0; v < all.values.size(); ++v) {
      if (Cut(layers_.value_layer[v])) continue;
      shrunk_.value_left[v] = static_cast<int>(left.values.size());
      shrunk_.value_of.push_back(static_cast<int>(v));
      left.values.push_back(all.values[v]);
    }
    for (ValueId id : all.outputs) {
      const int v = shrunk_.value_left[Index(id)];
      if (v >= 0) left.outputs.push_back(ValueId{v});
    }
  }

  // What a node of this layer (-1: none) reads for `id`; kNoValue: nothing.
  ValueId Replacement(ValueId id, int layer) const {
    const int from = layers_.value_layer[Index(id)];
    int value = static_cast<int>(id);
    if (Cut(from)) {
      if (layer < 0) return kNoValue;
      const int to = layer < cut_lower_ ? from + cut_count_ : from - cut_count_;
      if (to < 0 || to >= layers_.count) return kNoValue;
      value = layers_.values[layers_.value_role[Index(id)]][to];
      if (value < 0) return kNoValue;
    }
    const int left = shrunk_.value_left[value];
    return left < 0 ? kNoValue : ValueId{left};
  }

  bool KeepNodes() {
    shrunk_.node_left.assign(problem_.nodes.size(), -1);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const int layer = layers_.node_layer[n];
      if (Cut(layer)) continue;
      Node node = problem_.nodes[n];
      std::vector<ValueId> inputs;
      for (ValueId id : node.inputs) {
        const ValueId input = Replacement(id, layer);
        if (input != kNoValue) {
          inputs.push_back(input);
        } else if (layer >= 0) {
          return false;
        }
      }
      node.inputs = std::move(inputs);
      for (ValueId& id : node.outputs) id = Replacement(id, layer);
      std::vector<std::pair<ValueId, ValueId>> inplace;
      for (const auto& [in, out] : node.inplace) {
        const ValueId left = Replacement(in, layer);
        if (left != kNoValue) {
          inplace.emplace_back(left, Replacement(out, layer));
        }
      }
      node.inplace = std::move(inplace);
      shrunk_.node_left[n] = static_cast<int>(shrunk_.problem.nodes.size());
      shrunk_.node_of.push_back(static_cast<int>(n));
      shrunk_.problem.nodes.push_back(std::move(node));
    }
    return true;
  }

  // The host's bytes shrink with the bytes of all values.
  void ScaleHost() {
    if (!shrunk_.problem.machine) return;
    double all = 1, left = 1;
    for (const Value& value : problem_.values) {
      all += static_cast<double>(value.bytes);
    }
    for (const Value& value : shrunk_.problem.values) {
      left += static_cast<double>(value.bytes);
    }
    int64_t& host_bytes = shrunk_.problem.machine->host_bytes;
    host_bytes =
        static_cast<int64_t>(static_cast<double>(host_bytes) * left / all);
  }

  void KeepLayers() {
    Layers& left = shrunk_.layers;
    left.count = layers_.count - cut_count_;
    left.alike_lower = layers_.alike_lower;
    left.alike_upper = layers_.alike_upper - cut_count_;
    left.runs = layers_.runs;
    left.nodes.assign(layers_.nodes.size(), std::vector<int>(left.count, -1));
    left.values.assign(layers_.values.size(), std::vector<int>(left.count, -1));
    for (size_t n = 0; n < shrunk_.node_of.size(); ++n) {
      const int all = shrunk_.node_of[n];
      const int layer = layers_.node_layer[all];
      left.node_layer.push_back(layer < 0 ? -1 : LayerLeft(layer));
      left.node_role.push_back(layers_.node_role[all]);
      left.node_run.push_back(layers_.node_run[all]);
      if (layer < 0) continue;
      left.nodes[left.node_role[n]][left.node_layer[n]] = static_cast<int>(n);
    }
    for (size_t v = 0; v < shrunk_.value_of.size(); ++v) {
      const int all = shrunk_.value_of[v];
      const int layer = layers_.value_layer[all];
      left.value_layer.push_back(layer < 0 ? -1 : LayerLeft(layer));
      left.value_role.push_back(layers_.value_role[all]);
      if (layer < 0) continue;
      left.values[left.value_role[v]][left.value_layer[v]] =
          static_cast<int>(v);
    }
  }

  const Problem& problem_;
  const Layers& layers_;
  const int cut_count_;
  int cut_lower_ = 0, cut_upper_ = 0;
  bool possible_ = false;
  CoarseProblem shrunk_;
};

}  // namespace

std::optional<CoarseProblem> CoarsenProblem(const Problem& problem,
                                            const Layers& layers,
                                            int layers_left) {
  return Coarsening(problem, layers, layers_left).Run();
}

}  // namespace loadline::planner
