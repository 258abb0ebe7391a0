// One node, as the rules of the dependency groups see it.
#ifndef LOADLINE_PASSES_COMPRESS_RELATION_H_
#define LOADLINE_PASSES_COMPRESS_RELATION_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/compress/axis_atoms.h"
#include "passes/compress/reshape_blocks.h"

namespace loadline::passes {

class Relation {
 public:
  Relation(const models::Graph& graph, int32_t index,
           const std::vector<bool>& from_parameters, AxisAtoms& atoms,
           std::vector<ReshapeBlock>& reshapes)
      : node(graph.nodes[static_cast<size_t>(index)]),
        atoms(atoms),
        graph_(graph),
        index_(index),
        from_parameters_(from_parameters),
        reshapes_(reshapes) {}

  const models::Node& node;
  AxisAtoms& atoms;

  bool Has(size_t i) const {
    return i < node.inputs.size() && node.inputs[i] != models::kNoValue;
  }
  models::ValueId In(size_t i) const { return node.inputs[i]; }
  models::ValueId Out(size_t i = 0) const { return node.outputs[i]; }
  const models::TensorType& Type(models::ValueId id) const {
    return graph_.value(id).type;
  }
  int64_t Rank(models::ValueId id) const { return Type(id).rank(); }
  // "Softmax /attn/Softmax"
  std::string Name() const { return absl::StrCat(node.op, " ", node.name); }
  // Made of trained parameters only, so that a mask makes its channels zero.
  bool IsWeight(models::ValueId id) const {
    return from_parameters_[Index(id)];
  }

  // Neither trained nor computed: masks leave it alone.
  bool IsFixed(models::ValueId id) const {
    return graph_.value(id).kind == models::ValueKind::kConstant ||
           graph_.value(id).kind == models::ValueKind::kState;
  }
  // A constant of which every number is at least 1.
  bool IsAtLeastOne(models::ValueId id) const {
    const models::Value& value = graph_.value(id);
    if (value.kind != models::ValueKind::kConstant ||
        value.type.dtype != models::DType::kF32) {
      return false;
    }
    const auto numbers = value.initial->as<float>();
    return std::all_of(numbers.begin(), numbers.end(),
                       [](float x) { return x >= 1; });
  }

  void Same(models::ValueId a, int64_t axis_a, models::ValueId b,
            int64_t axis_b) {
    atoms.UniteAxes({a, axis_a}, {b, axis_b});
  }
  // Axes [0, rank) of both, where `but` is left out.
  void SameAxes(models::ValueId a, models::ValueId b, int64_t but = -1) {
    for (int64_t axis = 0; axis < Rank(a); ++axis) {
      if (axis != but) Same(a, axis, b, axis);
    }
  }
  // As NumPy broadcasts: from the last axis, each of the two without its last
  // `but_last` axes.
  void SameBroadcast(models::ValueId a, models::ValueId b,
                     int64_t but_last = 0) {
    for (int64_t k = but_last; k < std::min(Rank(a), Rank(b)); ++k) {
      Same(a, Rank(a) - 1 - k, b, Rank(b) - 1 - k);
    }
  }
  void Freeze(models::ValueId id, int64_t axis, absl::string_view what) {
    atoms.Freeze({id, axis}, absl::StrCat(what, " ", Name()));
  }
  void FreezeAll(absl::string_view what) {
    for (models::ValueId id : node.inputs) FreezeValue(id, what);
    for (models::ValueId id : node.outputs) FreezeValue(id, what);
  }
  void FreezeValue(models::ValueId id, absl::string_view what) {
    if (id == models::kNoValue) return;
    for (int64_t axis = 0; axis < Rank(id); ++axis) Freeze(id, axis, what);
  }
  void Approximate(models::ValueId id, int64_t axis, absl::string_view what) {
    atoms.Approximate({id, axis}, absl::StrCat(what, " ", Name()));
  }
  // The sum over `axis` of a product of a and b.
  void Contract(models::ValueId a, int64_t axis_a, models::ValueId b,
                int64_t axis_b) {
    Same(a, axis_a, b, axis_b);
    if (!IsWeight(a) && !IsWeight(b)) {
      Approximate(a, axis_a, "the sum without a trained weight in");
    }
  }
  void Makes(models::ValueId weight, int64_t axis) {
    if (IsWeight(weight)) atoms.MarkMaker({weight, axis}, index_);
  }
  void Defer() {
    for (ReshapeBlock& block : BlocksOfReshape(graph_, node)) {
      reshapes_.push_back(std::move(block));
    }
  }

 private:
  const models::Graph& graph_;
  int32_t index_;
  const std::vector<bool>& from_parameters_;
  std::vector<ReshapeBlock>& reshapes_;
};

// A rule sees one node and relates axes; it knows nothing of channels or
// groups.
using RelateRule = void (*)(Relation&);
using RelateRules = std::map<std::string, RelateRule>;

// By operator: those that compute element by element or along an axis
// (relate.cc), that move elements, and that have weights or windows.
RelateRules MovementRelations();
RelateRules LayerRelations();

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RELATION_H_
