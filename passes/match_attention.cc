// The match starts at a Softmax over the last axis. It goes backwards through
// masks and scales to the product of q and k, and forwards through a Dropout to
// the product with v. Nodes in between must have no other readers, since they
// are removed. Tested in tests/passes/fuse_attention_test.cc and
// fuse_attention_masks_test.cc.
#include "passes/match_attention.h"

#include <algorithm>
#include <utility>

#include "models/ops/attention.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::GraphIndex;
using models::Ints;
using models::kNoValue;
using models::Node;
using models::NodeId;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

// At most this counts as masked: scores of a trained model never differ that
// much, so in a row with other scores it acts as minus infinity.
constexpr float kMasked = -1e4f;
// Added to a score, at most this absorbs it in rounding. Adding it and
// replacing the score then give the same result, even in a row that is masked
// entirely.
constexpr float kAbsorbing = -1e30f;

// Swaps heads and sequence, and is its own inverse.
const Ints& HeadTranspose() {
  static const Ints& perm = *new Ints{0, 2, 1, 3};
  return perm;
}

Ints SwappedPerm(Ints perm) {
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

Ints LastTwoSwapped(size_t rank) {
  Ints perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  return SwappedPerm(std::move(perm));
}

Ints Permuted(const Ints& dims, const Ints& perm) {
  Ints permuted;
  for (int64_t axis : perm) permuted.push_back(dims[axis]);
  return permuted;
}

// Whether `hides(row, column)` holds exactly after the diagonal of a constant
// with the last two dimensions of the scores, and `shows` elsewhere.
template <typename T, typename Hides, typename Shows>
bool IsCausal(const models::Value& value, const Ints& scores,
              const Hides& hides, const Shows& shows) {
  const Ints& dims = value.type.dims;
  const int64_t rows = scores[scores.size() - 2];
  const int64_t columns = scores.back();
  if (value.kind != ValueKind::kConstant || dims.size() < 2 ||
      dims[dims.size() - 2] != rows || dims.back() != columns ||
      value.type.elements() != rows * columns) {
    return false;
  }
  const absl::Span<const T> contents = value.initial->as<T>();
  for (int64_t i = 0; i < rows * columns; ++i) {
    const bool hidden = i % columns > i / columns;
    if (!(hidden ? hides(contents[i]) : shows(contents[i]))) return false;
  }
  return true;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const GraphIndex& index,
          const std::vector<bool>& named)
      : graph_(graph), index_(index), named_(named) {}

  std::optional<AttentionMatch> Find(const Node& softmax) const {
    const ValueId scores = softmax.inputs[0];
    const Ints& dims = type(scores).dims;
    if (dims.size() < 2 || softmax.attributes.Int("axis", -1) !=
                               static_cast<int64_t>(dims.size()) - 1) {
      return std::nullopt;
    }
    AttentionMatch match;
    if (!TakeScores(scores, dims, match) ||
        !TakeProbabilities(softmax.outputs[0], match) || !Fits(dims, match)) {
      return std::nullopt;
    }
    Interleave(match);
    return match;
  }

 private:
  const TensorType& type(ValueId id) const { return graph_.value(id).type; }

  const Node* Producer(ValueId id) const {
    const int32_t producer = index_.producer[Index(id)];
    return producer < 0 ? nullptr : &graph_.nodes[producer];
  }

  // The only reader of `id`, if it has just one and is not named by the graph.
  std::optional<NodeId> OnlyReader(ValueId id) const {
    const std::vector<NodeId>& readers = index_.consumers[Index(id)];
    if (readers.size() != 1 || named_[Index(id)]) return std::nullopt;
    return readers[0];
  }

  // Whether `id` depends on a parameter, so that it may need a gradient.
  bool DependsOnParameter(ValueId id) const {
    std::vector<ValueId> rest = {id};
    std::vector<bool> seen(graph_.values.size(), false);
    while (!rest.empty()) {
      const ValueId at = rest.back();
      rest.pop_back();
      if (at == kNoValue || seen[Index(at)]) continue;
      seen[Index(at)] = true;
      if (graph_.value(at).kind == ValueKind::kParameter) return true;
      if (const Node* node = Producer(at)) {
        rest.insert(rest.end(), node->inputs.begin(), node->inputs.end());
      }
    }
    return false;
  }

  // If `node` multiplies or divides by a number: returns the other factor, and
  // multiplies *scale by that number.
  ValueId TakeScale(const Node& node, double* scale) const {
    if (node.op == "Div") {
      const std::optional<double> by = ScalarConstant(graph_, node.inputs[1]);
      if (!by.has_value()) return kNoValue;
      *scale /= *by;
      return node.inputs[0];
    }
    if (node.op != "Mul") return kNoValue;
    for (int i : {0, 1}) {
      const std::optional<double> by =
          ScalarConstant(graph_, node.inputs[1 - i]);
      // A factor of higher rank would change the shape.
      if (!by.has_value() ||
          type(node.inputs[i]).dims != type(node.outputs[0]).dims) {
        continue;
      }
      *scale *= *by;
      return node.inputs[i];
    }
    return kNoValue;
  }

  // Goes from the softmax's input back to the product, masks first.
  bool TakeScores(ValueId scores, const Ints& dims,
                  AttentionMatch& match) const {
    const Node* node = Producer(scores);
    if (node == nullptr || !OnlyReader(scores).has_value() ||
        type(scores).dims != dims) {
      return false;
    }
    if (node->op == "MatMul") return TakeProduct(*node, match);
    if (node->op == "Add") {
      for (int i : {0, 1}) {
        AttentionMatch tried = match;
        if (TakeMask(node->inputs[1 - i], dims, tried) &&
            TakeScores(node->inputs[i], dims, tried)) {
          match = tried;
          return true;
        }
      }
      return false;
    }
    if (node->op == "Where") {
      const int kept = ScalarConstant(graph_, node->inputs[1]) ? 2 : 1;
      return TakeCondition(*node, kept, dims, match) &&
             TakeScores(node->inputs[kept], dims, match);
    }
    // A scale applied after a mask would scale the mask too.
    const ValueId factor = TakeScale(*node, &match.scale);
    if (factor == kNoValue || !OnlyReader(factor).has_value()) return false;
    const Node* product = Producer(factor);
    return product != nullptr && product->op == "MatMul" &&
           TakeProduct(*product, match);
  }

  bool TakeMask(ValueId mask, const Ints& dims, AttentionMatch& match) const {
    const models::Value& value = graph_.value(mask);
    if (value.type.dtype != DType::kF32) return false;
    if (!match.causal && IsCausal<float>(
                             value, dims, [](float x) { return x <= kMasked; },
                             [](float x) { return x == 0; })) {
      match.causal = true;
      return true;
    }
    if (match.mask.has_value() || DependsOnParameter(mask)) return false;
    match.mask = AttentionMask{mask};
    return true;
  }

  bool TakeCondition(const Node& where, int kept, const Ints& dims,
                     AttentionMatch& match) const {
    const std::optional<double> masked =
        ScalarConstant(graph_, where.inputs[3 - kept]);
    if (!masked.has_value() || !(*masked <= kMasked)) return false;
    const bool shows = kept == 1;
    if (!match.causal &&
        IsCausal<uint8_t>(
            graph_.value(where.inputs[0]), dims,
            [shows](uint8_t x) { return (x != 0) != shows; },
            [shows](uint8_t x) { return (x != 0) == shows; })) {
      match.causal = true;
      return true;
    }
    if (match.mask.has_value() || *masked > kAbsorbing) return false;
    const auto low = static_cast<float>(*masked);
    match.mask = AttentionMask{kNoValue, where.inputs[0], shows ? 0 : low,
                               shows ? low : 0};
    return true;
  }

  bool TakeProduct(const Node& product, AttentionMatch& match) const {
    const size_t rank = type(product.outputs[0]).dims.size();
    if (type(product.inputs[0]).dims.size() != rank ||
        type(product.inputs[1]).dims.size() != rank) {
      return false;
    }
    match.q = Rows(product.inputs[0], product.attributes.Int("trans_a", 0) != 0,
                   &match.scale);
    match.k = Rows(product.inputs[1], product.attributes.Int("trans_b", 0) == 0,
                   &match.scale);
    return true;
  }

  // `id`, with its last two dimensions swapped if `swapped`; removes scales on
  // the path if `scale` is given.
  AttentionOperand Rows(ValueId id, bool swapped, double* scale) const {
    while (const Node* node = Producer(id)) {
      if (scale != nullptr) {
        const ValueId factor = TakeScale(*node, scale);
        if (factor != kNoValue) {
          id = factor;
          continue;
        }
      }
      if (!swapped) break;
      if (node->op == "Transpose") {
        const Ints perm = SwappedPerm(node->attributes.IntList("perm"));
        id = node->inputs[0];
        if (!std::is_sorted(perm.begin(), perm.end())) return {id, perm};
        swapped = false;
        continue;
      }
      const ValueId rows = UnfoldedTranspose(*node);
      if (rows == kNoValue) break;
      id = rows;
      swapped = false;
    }
    return swapped ? AttentionOperand{id, LastTwoSwapped(type(id).dims.size())}
                   : AttentionOperand{id, {}};
  }

  // The x of Reshape(Transpose(Reshape(x))) that swaps x's last two dimensions
  // while the others are merged into one.
  ValueId UnfoldedTranspose(const Node& unfold) const {
    if (unfold.op != "Reshape") return kNoValue;
    const Node* transpose = Producer(unfold.inputs[0]);
    if (transpose == nullptr || transpose->op != "Transpose") return kNoValue;
    const Ints perm = transpose->attributes.IntList("perm");
    if (perm != LastTwoSwapped(perm.size())) return kNoValue;
    const Node* fold = Producer(transpose->inputs[0]);
    if (fold == nullptr || fold->op != "Reshape") return kNoValue;
    const Ints& made = type(unfold.outputs[0]).dims;
    const Ints& given = type(fold->inputs[0]).dims;
    const Ints& between = type(unfold.inputs[0]).dims;
    const bool same_matrices =
        made.size() >= 2 && between[between.size() - 1] == made.back() &&
        between[between.size() - 2] == made[made.size() - 2] &&
        given == Permuted(made, LastTwoSwapped(made.size()));
    return same_matrices ? fold->inputs[0] : kNoValue;
  }

  // Goes from the softmax's output forward to the product with v.
  bool TakeProbabilities(ValueId p, AttentionMatch& match) const {
    std::optional<NodeId> reader = OnlyReader(p);
    if (!reader.has_value()) return false;
    const Node* node = &graph_.node(*reader);
    if (node->op == "Dropout") {
      match.ratio = node->attributes.Float("ratio", 0);
      match.salt = node->attributes.Int("salt", 0);
      if (node->attributes.Has("offset")) {
        match.offset = node->attributes.Int("offset", 0);
      }
      p = node->outputs[0];
      reader = OnlyReader(p);
      if (!reader.has_value()) return false;
      node = &graph_.node(*reader);
    }
    if (node->op != "MatMul" || node->inputs[0] != p || node->inputs[1] == p ||
        node->attributes.Int("trans_a", 0) != 0) {
      return false;
    }
    match.v =
        Rows(node->inputs[1], node->attributes.Int("trans_b", 0) != 0, nullptr);
    match.last = Index(*reader);
    return true;
  }

  TensorType TypeOf(const AttentionOperand& operand) const {
    TensorType made = type(operand.value);
    if (!operand.perm.empty()) made.dims = Permuted(made.dims, operand.perm);
    return made;
  }

  // Whether the parts form an attention with these scores, without
  // broadcasting.
  bool Fits(const Ints& scores, const AttentionMatch& match) const {
    const absl::StatusOr<models::AttentionShape> shape =
        models::AttentionShapeOf({}, TypeOf(match.q), TypeOf(match.k),
                                 TypeOf(match.v));
    return shape.ok() && shape->ScoreDims() == scores;
  }

  // The value whose HeadTranspose `operand` is, or kNoValue.
  ValueId Headless(const AttentionOperand& operand) const {
    if (!operand.perm.empty()) {
      return operand.perm == HeadTranspose() ? operand.value : kNoValue;
    }
    const Node* node = Producer(operand.value);
    return node != nullptr && node->op == "Transpose" &&
                   node->attributes.IntList("perm") == HeadTranspose()
               ? node->inputs[0]
               : kNoValue;
  }

  void Interleave(AttentionMatch& match) const {
    const std::optional<NodeId> reader =
        OnlyReader(graph_.nodes[match.last].outputs[0]);
    if (!reader.has_value()) return;
    const Node& back = graph_.node(*reader);
    if (back.op != "Transpose" ||
        back.attributes.IntList("perm") != HeadTranspose()) {
      return;
    }
    const AttentionOperand operands[] = {{Headless(match.q), {}},
                                         {Headless(match.k), {}},
                                         {Headless(match.v), {}}};
    for (const AttentionOperand& operand : operands) {
      if (operand.value == kNoValue) return;
    }
    match.q = operands[0];
    match.k = operands[1];
    match.v = operands[2];
    match.interleaved = true;
    match.last = Index(*reader);
  }

  const Graph& graph_;
  const GraphIndex& index_;
  const std::vector<bool>& named_;
};

}  // namespace

std::optional<AttentionMatch> MatchAttention(const Graph& graph,
                                             const GraphIndex& index,
                                             const std::vector<bool>& named,
                                             const Node& softmax) {
  return Matcher(graph, index, named).Find(softmax);
}

}  // namespace loadline::passes
