// Rules of operators that move elements. Tested in
// tests/passes/compress/prune_groups_test.cc and, operator by operator, in
// tests/conformance/pruned_model_test.cc.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/compress/relation.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;

void Transpose(Relation& r) {
  const Ints perm = r.node.attributes.IntList("perm");
  for (size_t i = 0; i < perm.size(); ++i) {
    r.Same(r.In(0), perm[i], r.Out(), static_cast<int64_t>(i));
  }
}

// A joined value and its parts: Concat and Split.
void Parts(Relation& r, ValueId whole, const std::vector<ValueId>& parts) {
  const int64_t axis = r.node.attributes.Int("axis", 0);
  int64_t start = 0;
  for (ValueId part : parts) {
    const int64_t size = r.Type(part).dims[static_cast<size_t>(axis)];
    r.SameAxes(part, whole, axis);
    r.atoms.UniteRanges({part, axis}, 0, {whole, axis}, start, size);
    start += size;
  }
}
void Concat(Relation& r) { Parts(r, r.Out(), r.node.inputs); }
void SplitParts(Relation& r) { Parts(r, r.In(0), r.node.outputs); }

// A part and the value that it was cut from, or is padded to.
void Window(Relation& r, ValueId part, ValueId whole) {
  const Ints axes = r.node.attributes.IntList("axes");
  const Ints starts = r.node.attributes.IntList("starts");
  const Ints steps = r.node.attributes.IntList("steps");
  for (int64_t axis = 0; axis < r.Rank(part); ++axis) {
    const auto at = std::find(axes.begin(), axes.end(), axis);
    if (at == axes.end()) {
      r.Same(part, axis, whole, axis);
      continue;
    }
    const auto i = static_cast<size_t>(at - axes.begin());
    if (steps[i] != 1) {
      r.Freeze(part, axis, "the stride of");
      r.Freeze(whole, axis, "the stride of");
    } else {
      r.atoms.UniteRanges({part, axis}, 0, {whole, axis}, starts[i],
                          r.Type(part).dims[static_cast<size_t>(axis)]);
    }
  }
}
void Slice(Relation& r) { Window(r, r.Out(), r.In(0)); }
// Zeros beside the part have no maker, and stay unless what they are added to
// goes.
void SliceGrad(Relation& r) { Window(r, r.In(0), r.Out()); }

// `picked` has the axes of `data` before and after `axis`, and those of the
// indices in its place.
void Indexed(Relation& r, ValueId data, ValueId indices, ValueId picked) {
  const int64_t axis = r.node.attributes.Int("axis", 0);
  const int64_t width = r.Rank(indices);
  r.Freeze(data, axis, "positions that indices name in");
  for (int64_t k = 0; k < r.Rank(data); ++k) {
    if (k != axis) r.Same(data, k, picked, k < axis ? k : k - 1 + width);
  }
  for (int64_t k = 0; k < width; ++k) r.Same(indices, k, picked, axis + k);
}
void Gather(Relation& r) {
  Indexed(r, r.In(0), r.In(1), r.Out());
  // An embedding makes the channels of its rows.
  for (int64_t axis = 0; axis < r.Rank(r.In(0)); ++axis) {
    if (axis != r.node.attributes.Int("axis", 0)) r.Makes(r.In(0), axis);
  }
}
void GatherGrad(Relation& r) { Indexed(r, r.Out(), r.In(1), r.In(0)); }

void Scatter(Relation& r) {
  for (ValueId id : {r.In(0), r.In(2), r.Out()}) {
    r.Freeze(id, 0, "positions that indices name in");
  }
  r.SameAxes(r.In(0), r.Out(), 0);
  r.SameAxes(r.In(2), r.Out(), 0);
  r.Same(r.In(1), 0, r.In(2), 0);
}

}  // namespace

RelateRules MovementRelations() {
  return {
      {"Reshape", [](Relation& r) { r.Defer(); }},
      {"Transpose", Transpose},
      {"Concat", Concat},
      {"Split", SplitParts},
      {"Slice", Slice},
      {"SliceGrad", SliceGrad},
      {"Gather", Gather},
      {"GatherGrad", GatherGrad},
      {"Scatter", Scatter},
      {"ScatterReduce", Scatter},
  };
}

}  // namespace loadline::passes
