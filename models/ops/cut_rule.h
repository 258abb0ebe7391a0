// What the rules of models/ops/cut_axis.h share: each says how the nodes of one
// operator can be cut.
#ifndef LOADLINE_MODELS_OPS_CUT_RULE_H_
#define LOADLINE_MODELS_OPS_CUT_RULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "models/ops/cut_axis.h"
#include "models/types.h"

namespace loadline::models {

// The arguments of CutNode.
struct CutCall {
  const Node& node;
  absl::Span<const TensorType* const> types;
  absl::Span<const TensorType> outputs;
  absl::Span<const int64_t> axes;
  int64_t parts;
  BatchStatistics statistics;

  bool has(size_t i) const { return i < types.size() && types[i] != nullptr; }
  bool cut(size_t i) const { return i < axes.size() && axes[i] != kWhole; }
  int64_t rank(size_t i) const { return types[i]->rank(); }
  size_t first_cut() const {
    size_t i = 0;
    while (axes[i] == kWhole) ++i;
    return i;
  }

  template <typename... Parts>
  absl::Status Refuse(const Parts&... parts_of_text) const {
    return absl::FailedPreconditionError(
        absl::StrCat(node.op, " '", node.name, "' ", parts_of_text...));
  }

  // All inputs whole, outputs cut along `axis`, the node's attributes.
  NodeCut Result(int64_t axis) const {
    return {std::vector<int64_t>(types.size(), kWhole),
            std::vector<int64_t>(outputs.size(), axis), node.attributes};
  }
};

using CutRule = absl::StatusOr<NodeCut> (*)(const CutCall& c);

// Of operators whose operands broadcast to the first output.
absl::StatusOr<NodeCut> CutPointwise(const CutCall& c);

// All operands and results along one axis, which must not be `axis`.
absl::StatusOr<NodeCut> CutBesideAxis(const CutCall& c, int64_t axis,
                                      absl::string_view does);

// The shape of one part.
Ints PartOfShape(Ints shape, int64_t axis, int64_t parts);

// The rule of an operator that only moves elements; null for any other.
CutRule MoveRuleOf(const std::string& op);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_CUT_RULE_H_
