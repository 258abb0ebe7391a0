// One walk in the nodes' order: a GeluGrad that fits is replaced where it
// stands, and the product that it alone read is dead afterwards. Tested in
// tests/passes/fuse_gelu_gradient_test.cc.
#include "passes/fuse_gelu_gradient.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/plain_product.h"
#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"
#include "planner/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::GraphIndex;
using models::Ints;
using models::Node;
using models::TensorType;
using models::ValueId;

class GeluGradientFuser {
 public:
  explicit GeluGradientFuser(Graph& graph)
      : graph_(graph),
        index_(models::IndexGraph(graph)),
        named_(NamedByGraph(graph)),
        old_nodes_(std::move(graph.nodes)) {
    graph_.nodes.clear();
  }

  absl::Status Run() {
    for (const Node& node : old_nodes_) {
      const std::optional<PlainProduct> product = ProductOf(node);
      if (product.has_value()) {
        LOADLINE_RETURN_IF_ERROR(Replace(node, *product));
      } else {
        graph_.nodes.push_back(node);
      }
    }
    return RemoveDeadNodes(graph_);
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return graph_.value(id).type; }

  // The node that makes `id` for this one reader.
  const Node* OnlyFor(ValueId id) const {
    const int32_t producer = index_.producer[Index(id)];
    const bool only =
        index_.consumers[Index(id)].size() == 1 && !named_[Index(id)];
    return producer < 0 || !only ? nullptr
                                 : &old_nodes_[static_cast<size_t>(producer)];
  }

  // The product that the node multiplies with the slope, if it fits.
  std::optional<PlainProduct> ProductOf(const Node& node) const {
    if (node.op != "GeluGrad" || node.inputs[0] == node.inputs[1] ||
        node.attributes.String("approximate", "none") != "tanh" ||
        TypeOf(node.inputs[0]).dtype != models::DType::kBF16) {
      return std::nullopt;
    }
    const Node* maker = OnlyFor(node.inputs[0]);
    if (maker != nullptr && maker->op == "Reshape") {
      maker = OnlyFor(maker->inputs[0]);
    }
    if (maker == nullptr) return std::nullopt;
    return AsPlainProduct(graph_, *maker);
  }

  absl::StatusOr<ValueId> Make(const Node& of, const char* op,
                               std::vector<ValueId> inputs,
                               Attributes attributes) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode(op, absl::StrCat(of.name, ".", op), std::move(inputs),
                       std::move(attributes), of.phase));
    return made[0];
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
          x, Make(node, "Reshape", {x}, {{"shape", matrix}}));
    }
    Attributes attributes = GemmAttributes(product);
    attributes.Set("approximate", std::string("tanh"));
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId dx, Make(node, "GemmGeluGrad", {product.a, product.b, x},
                               std::move(attributes)));
    if (dims != matrix) {
      LOADLINE_RETURN_IF_ERROR(
          Make(node, "Reshape", {dx}, {{"shape", dims}}).status());
    }
    // The last node makes what the GeluGrad made, under its name.
    graph_.nodes.back().outputs = node.outputs;
    graph_.nodes.back().name = node.name;
    return absl::OkStatus();
  }

  Graph& graph_;
  const GraphIndex index_;
  const std::vector<bool> named_;
  const std::vector<Node> old_nodes_;
};

}  // namespace

absl::Status FuseGeluGradient(Graph& graph) {
  return GeluGradientFuser(graph).Run();
}

}  // namespace loadline::passes
