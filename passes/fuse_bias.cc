// One pass over the nodes in order: an Add that matches is replaced in place,
// and the product that only it read is then dead. Tested in
// tests/passes/fuse_bias_test.cc.
#include "passes/fuse_bias.h"

#include <utility>
#include <vector>

#include "passes/node_replacer.h"
#include "passes/remove_dead_nodes.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Ints;
using models::Node;
using models::TensorType;
using models::ValueId;

class BiasFuser {
 public:
  explicit BiasFuser(Graph& graph) : nodes_(graph) {}

  absl::Status Run() {
    for (const Node& node : nodes_.old_nodes()) {
      bool replaced = false;
      for (size_t bias = 0; bias < 2 && node.op == "Add" && !replaced; ++bias) {
        const Node* product =
            ProductOf(node, node.inputs[1 - bias], node.inputs[bias]);
        if (product == nullptr) continue;
        LOADLINE_RETURN_IF_ERROR(Replace(node, *product, node.inputs[bias]));
        replaced = true;
      }
      if (!replaced) nodes_.Keep(node);
    }
    return absl::OkStatus();
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return nodes_.TypeOf(id); }

  // The MatMul that computes `made`, if it can take `bias`.
  const Node* ProductOf(const Node& add, ValueId made, ValueId bias) const {
    const Node* product = nodes_.MakerForOneReader(made);
    if (product == nullptr || made == bias || product->op != "MatMul" ||
        product->attributes.Flag("exact")) {  // a Gemm may be rounded
      return nullptr;
    }
    const TensorType& x = TypeOf(product->inputs[0]);
    const TensorType& w = TypeOf(product->inputs[1]);
    const TensorType& y = TypeOf(made);
    const TensorType& b = TypeOf(bias);
    const bool matrices =
        w.rank() == 2 && x.rank() >= 2 && x.elements() > 0 &&
        w.elements() > 0 &&
        (x.rank() == 2 || product->attributes.Int("trans_a", 0) == 0);
    const bool row =
        b.rank() == 1 && b.dims[0] == y.dims.back() && b.dtype == y.dtype;
    return matrices && row && TypeOf(add.outputs[0]) == y ? product : nullptr;
  }

  absl::Status Replace(const Node& add, const Node& product, ValueId bias) {
    const Ints dims = TypeOf(add.outputs[0]).dims;
    const bool matrix = dims.size() == 2;
    ValueId x = product.inputs[0];
    if (!matrix) {
      const TensorType type = TypeOf(x);
      const int64_t inner = type.dims.back();
      LOADLINE_ASSIGN_OR_RETURN(
          x, nodes_.Make(add, "Reshape", {x},
                         {{"shape", Ints{type.elements() / inner, inner}}}));
    }
    Attributes attributes;
    for (const auto& [from, to] :
         {std::pair("trans_a", "transA"), std::pair("trans_b", "transB")}) {
      if (product.attributes.Int(from, 0) != 0) {
        attributes.Set(to, int64_t{1});
      }
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId y, nodes_.Make(add, "Gemm", {x, product.inputs[1], bias},
                                     std::move(attributes)));
    if (!matrix) {
      LOADLINE_RETURN_IF_ERROR(
          nodes_.Make(add, "Reshape", {y}, {{"shape", dims}}).status());
    }
    nodes_.StandsFor(add);
    return absl::OkStatus();
  }

  NodeReplacer nodes_;
};

}  // namespace

absl::Status FuseBias(Graph& graph) {
  LOADLINE_RETURN_IF_ERROR(BiasFuser(graph).Run());
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
