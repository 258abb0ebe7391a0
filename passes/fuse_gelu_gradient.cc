// One pass over the nodes in order: a GeluGrad that matches is replaced in
// place, and the product that only it read is then dead. Tested in
// tests/passes/fuse_gelu_gradient_test.cc.
#include "passes/fuse_gelu_gradient.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/node_replacer.h"
#include "passes/plain_product.h"
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

class GeluGradientFuser {
 public:
  explicit GeluGradientFuser(Graph& graph) : nodes_(graph) {}

  absl::Status Run() {
    for (const Node& node : nodes_.old_nodes()) {
      const std::optional<PlainProduct> product = ProductOf(node);
      if (product.has_value()) {
        LOADLINE_RETURN_IF_ERROR(Replace(node, *product));
      } else {
        nodes_.Keep(node);
      }
    }
    return absl::OkStatus();
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return nodes_.TypeOf(id); }

  // The product that the node multiplies with the slope, if it matches.
  std::optional<PlainProduct> ProductOf(const Node& node) const {
    if (node.op != "GeluGrad" || node.inputs[0] == node.inputs[1] ||
        node.attributes.String("approximate", "none") != "tanh" ||
        TypeOf(node.inputs[0]).dtype != models::DType::kBF16) {
      return std::nullopt;
    }
    const Node* maker = nodes_.MakerForOneReader(node.inputs[0]);
    if (maker != nullptr && maker->op == "Reshape") {
      maker = nodes_.MakerForOneReader(maker->inputs[0]);
    }
    if (maker == nullptr) return std::nullopt;
    return AsPlainProduct(nodes_.graph(), *maker);
  }

  absl::Status Replace(const Node& node, const PlainProduct& product) {
    const auto side = [&](ValueId id, bool columns) {
      return TypeOf(id).dims[columns ? 1 : 0];
    };
    const Ints matrix = {side(product.a, product.trans_a),
                         side(product.b, !product.trans_b)};
    const Ints dims = TypeOf(node.outputs[0]).dims;
    ValueId x = node.inputs[1];
    if (dims != matrix) {
      LOADLINE_ASSIGN_OR_RETURN(
          x, nodes_.Make(node, "Reshape", {x}, {{"shape", matrix}}));
    }
    Attributes attributes = GemmAttributes(product);
    attributes.Set("approximate", std::string("tanh"));
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId dx,
        nodes_.Make(node, "GemmGeluGrad", {product.a, product.b, x},
                    std::move(attributes)));
    if (dims != matrix) {
      LOADLINE_RETURN_IF_ERROR(
          nodes_.Make(node, "Reshape", {dx}, {{"shape", dims}}).status());
    }
    nodes_.StandsFor(node);
    return absl::OkStatus();
  }

  NodeReplacer nodes_;
};

}  // namespace

absl::Status FuseGeluGradient(Graph& graph) {
  LOADLINE_RETURN_IF_ERROR(GeluGradientFuser(graph).Run());
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
