// Exporters order and group the factors in many ways, so matching is algebraic:
// the argument of Erf or Tanh is expanded to a polynomial of degree at most
// three in a candidate x and compared with the formula's coefficients. Its
// result must then pass through "+ 1" and products with polynomials in x whose
// product is x/2. Tested in tests/passes/fuse_gelu_test.cc.
#include "passes/fuse_gelu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::Node;
using models::NodeId;
using models::ValueId;

// Coefficients of 1, x, x², x³.
using Polynomial = std::array<double, 4>;

// Exports store the constants as f32, some rounded to six digits.
constexpr double kTolerance = 1e-5;
// Most arithmetic nodes between x and Erf or Tanh; the longest form seen has
// five.
constexpr int kMaxDepth = 8;

bool Near(const Polynomial& a, const Polynomial& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > kTolerance * std::max(1e-2, std::abs(b[i]))) {
      return false;
    }
  }
  return true;
}

Polynomial Sum(const Polynomial& a, const Polynomial& b, double sign) {
  Polynomial sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += sign * b[i];
  return sum;
}

// None if the degree would exceed three.
std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product{};
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j >= product.size()) return std::nullopt;
      product[i + j] += a[i] * b[j];
    }
  }
  return product;
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph)
      : graph_(graph), index_(models::IndexGraph(graph)) {
    named_ = NamedByGraph(graph);
  }

  struct Match {
    ValueId x;
    NodeId last;  // the node whose output is Gelu(x)
  };
  // The Gelu that contains this Erf or Tanh node, if there is one.
  std::optional<Match> Find(const Node& node) const {
    const double beta = std::sqrt(2.0 / M_PI);
    const Polynomial argument = node.op == "Erf"
                                    ? Polynomial{0, M_SQRT1_2, 0, 0}
                                    : Polynomial{0, beta, 0, beta * 0.044715};
    std::vector<ValueId> candidates;
    CollectCandidates(node.inputs[0], kMaxDepth, candidates);
    for (ValueId x : candidates) {
      const std::optional<Polynomial> found =
          Expand(node.inputs[0], x, kMaxDepth);
      if (!found.has_value() || !Near(*found, argument)) continue;
      const std::optional<NodeId> last = Climb(node.outputs[0], x);
      if (last.has_value()) return Match{x, *last};
    }
    return std::nullopt;
  }

 private:
  const Node* Producer(ValueId id) const {
    const int32_t producer = index_.producer[Index(id)];
    return producer < 0 ? nullptr : &graph_.nodes[producer];
  }

  // Values from which `id` is computed, nearest first.
  void CollectCandidates(ValueId id, int depth,
                         std::vector<ValueId>& candidates) const {
    if (depth == 0 || ScalarConstant(graph_, id).has_value()) return;
    if (std::find(candidates.begin(), candidates.end(), id) !=
        candidates.end()) {
      return;
    }
    candidates.push_back(id);
    const Node* node = Producer(id);
    if (node == nullptr) return;
    static constexpr absl::string_view kArithmetic[] = {"Add", "Sub", "Mul",
                                                        "Div", "Pow", "Neg"};
    if (std::find(std::begin(kArithmetic), std::end(kArithmetic), node->op) ==
        std::end(kArithmetic)) {
      return;
    }
    for (ValueId input : node->inputs) {
      CollectCandidates(input, depth - 1, candidates);
    }
  }

  // `id` as a polynomial in `x`; none if it is not one.
  std::optional<Polynomial> Expand(ValueId id, ValueId x, int depth) const {
    if (id == x) return Polynomial{0, 1, 0, 0};
    const std::optional<double> constant = ScalarConstant(graph_, id);
    if (constant.has_value()) return Polynomial{*constant, 0, 0, 0};
    const Node* node = Producer(id);
    if (node == nullptr || depth == 0) return std::nullopt;
    if (node->op != "Add" && node->op != "Sub" && node->op != "Mul" &&
        node->op != "Div" && node->op != "Pow" && node->op != "Neg") {
      return std::nullopt;
    }
    const std::optional<Polynomial> a = Expand(node->inputs[0], x, depth - 1);
    if (!a.has_value()) return std::nullopt;
    if (node->op == "Neg") return Sum(Polynomial{}, *a, -1);
    if (node->op == "Div" || node->op == "Pow") {
      const std::optional<double> b = ScalarConstant(graph_, node->inputs[1]);
      if (!b.has_value()) return std::nullopt;
      if (node->op == "Div") return Product(*a, Polynomial{1 / *b, 0, 0, 0});
      if (*b == 2) return Product(*a, *a);
      if (*b != 3) return std::nullopt;
      const std::optional<Polynomial> square = Product(*a, *a);
      return square.has_value() ? Product(*square, *a) : std::nullopt;
    }
    const std::optional<Polynomial> b = Expand(node->inputs[1], x, depth - 1);
    if (!b.has_value()) return std::nullopt;
    if (node->op == "Mul") return Product(*a, *b);
    return Sum(*a, *b, node->op == "Add" ? 1 : -1);
  }

  // The only reader of `id`, if it has just one and is not named by the graph.
  std::optional<NodeId> OnlyReader(ValueId id) const {
    const std::vector<NodeId>& readers = index_.consumers[Index(id)];
    if (readers.empty() || named_[Index(id)]) return std::nullopt;
    for (NodeId reader : readers) {
      if (reader != readers[0]) return std::nullopt;
    }
    return readers[0];
  }

  // Follows "+ 1" and products from `value` up to x/2·(value + 1); returns the
  // node that completes it.
  std::optional<NodeId> Climb(ValueId value, ValueId x) const {
    Polynomial factor{1, 0, 0, 0};
    bool one_added = false;
    for (int step = 0; step < kMaxDepth; ++step) {
      const std::optional<NodeId> reader = OnlyReader(value);
      if (!reader.has_value()) return std::nullopt;
      const Node& node = graph_.node(*reader);
      const bool divides = node.op == "Div" && node.inputs[0] == value;
      if (node.op != (one_added ? "Mul" : "Add") && !(one_added && divides)) {
        return std::nullopt;
      }
      const ValueId other =
          node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
      std::optional<Polynomial> expanded = Expand(other, x, kMaxDepth);
      if (!expanded.has_value()) return std::nullopt;
      value = node.outputs[0];
      if (!one_added) {
        if (!Near(*expanded, {1, 0, 0, 0})) return std::nullopt;
        one_added = true;
        continue;
      }
      if (divides) {
        const std::optional<double> divisor = ScalarConstant(graph_, other);
        if (!divisor.has_value()) return std::nullopt;
        expanded = Polynomial{1 / *divisor, 0, 0, 0};
      }
      const std::optional<Polynomial> product = Product(factor, *expanded);
      if (!product.has_value()) return std::nullopt;
      factor = *product;
      if (Near(factor, {0, 0.5, 0, 0}) &&
          graph_.value(value).type == graph_.value(x).type) {
        return reader;
      }
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const GraphIndex index_;
  std::vector<bool> named_;
};

}  // namespace

absl::Status FuseGelu(Graph& graph) {
  // Matches cannot overlap, since a node completes only one product.
  std::vector<std::pair<Matcher::Match, bool>> matches;  // (match, tanh form)
  const Matcher matcher(graph);
  for (const Node& node : graph.nodes) {
    if (node.op != "Erf" && node.op != "Tanh") continue;
    const std::optional<Matcher::Match> match = matcher.Find(node);
    if (match.has_value()) matches.emplace_back(*match, node.op == "Tanh");
  }
  for (const auto& [match, tanh_form] : matches) {
    Node& last = graph.nodes[Index(match.last)];
    last.op = "Gelu";
    last.inputs = {match.x};
    last.attributes = models::Attributes(
        {{"approximate", std::string(tanh_form ? "tanh" : "none")}});
  }
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
