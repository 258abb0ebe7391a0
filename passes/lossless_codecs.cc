// Abstract interpretation in one pass over the nodes: for each value a range of
// integers, or nothing, and whether an f32 holds bf16. Tested in
// tests/passes/lossless_codecs_test.cc.
#include "passes/lossless_codecs.h"

#include <algorithm>
#include <iterator>

#include "models/ops/codec.h"
#include "models/storage.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::Node;
using models::ValueId;
using models::ValueKind;

// Targets without a class (executor/device/ignored_target.h).
constexpr int64_t kLeastTarget = -100;

using Range = IntegerRange;
using MaybeRange = std::optional<Range>;

// Every element of the output is an element of one of the inputs.
bool TakesElements(const Node& node) {
  static constexpr absl::string_view kMovers[] = {"Transpose", "Slice", "Split",
                                                  "Expand", "Concat"};
  return std::find(std::begin(kMovers), std::end(kMovers), node.op) !=
         std::end(kMovers);
}

// Every element of output 0 is an element of an input, or 0.
bool ChoosesElements(const Node& node) {
  return TakesElements(node) || node.op == "Relu" || node.op == "MaxPool" ||
         node.op == "Max" || node.op == "Min";
}

int64_t Plane(const models::TensorType& x) {
  int64_t plane = 1;
  for (size_t i = 2; i < x.dims.size(); ++i) plane *= x.dims[i];
  return plane;
}

class Analysis {
 public:
  explicit Analysis(const Graph& graph)
      : graph_(graph),
        roots_(models::StorageRoots(graph)),
        ranges_(graph.values.size()),
        is_bf16_(graph.values.size(), false) {
    for (const Node& node : graph.nodes) RangeOfInputs(node);
    for (const Node& node : graph.nodes) {
      if (!models::IsView(node)) Outputs(node);
    }
  }

  std::string CodecOf(size_t v) const {
    const models::Value& value = graph_.values[v];
    if (Index(roots_[v]) != v) return "";
    switch (value.type.dtype) {
      case DType::kBool:
        return "bits";
      case DType::kF32:
        return is_bf16_[v] ? "bf16" : "";
      case DType::kI32:
      case DType::kI64:
        if (!ranges_[v].has_value()) return "";
        return models::IntegerCodec(value.type.dtype, ranges_[v]->least,
                                    ranges_[v]->most);
      default:
        return "";
    }
  }

  const std::vector<MaybeRange>& ranges() const { return ranges_; }

 private:
  size_t Root(ValueId id) const { return Index(roots_[Index(id)]); }
  const models::TensorType& TypeOf(ValueId id) const {
    return graph_.value(id).type;
  }

  // An input of the graph has the narrowest range of those that its readers
  // check: outside of it the step fails.
  void RangeOfInputs(const Node& node) {
    const auto limit = [&](size_t input, int64_t least, int64_t most) {
      const size_t root = Root(node.inputs[input]);
      if (graph_.values[root].kind != ValueKind::kInput) return;
      MaybeRange& range = ranges_[root];
      if (!range.has_value()) range = Range{least, most};
      range->least = std::max(range->least, least);
      range->most = std::min(range->most, most);
    };
    if (node.op == "Gather") {
      const std::vector<int64_t>& dims = TypeOf(node.inputs[0]).dims;
      const int64_t axis = node.attributes.Int("axis", 0);
      const auto rank = static_cast<int64_t>(dims.size());
      const int64_t size =
          dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
      limit(1, -size, size - 1);
    } else if (node.op == "SoftmaxCrossEntropy") {
      const std::vector<int64_t>& dims = TypeOf(node.inputs[0]).dims;
      const int64_t axis = node.attributes.Int("class_axis", -1);
      const auto rank = static_cast<int64_t>(dims.size());
      limit(1, kLeastTarget,
            dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)] - 1);
    }
  }

  void Outputs(const Node& node) {
    if (node.outputs.empty()) return;
    if (node.op == "MaxPool" && node.outputs.size() > 1) {
      SetRange(node.outputs[1], Range{0, Plane(TypeOf(node.inputs[0])) - 1});
    } else if (node.op == "TopK") {
      const models::TensorType& x = TypeOf(node.inputs[0]);
      const int64_t axis = node.attributes.Int("axis", 0);
      SetRange(node.outputs[0],
               Range{0, x.dims[static_cast<size_t>(axis)] - 1});
    } else if (node.op == "Cast") {
      Cast(node);
    } else if (TakesElements(node)) {
      MaybeRange all = RangeOf(node.inputs[0]);
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        const MaybeRange range = RangeOf(node.inputs[i]);
        if (!all.has_value() || !range.has_value()) {
          all.reset();
          break;
        }
        all = Range{std::min(all->least, range->least),
                    std::max(all->most, range->most)};
      }
      for (ValueId id : node.outputs) SetRange(id, all);
    }
    if (ChoosesElements(node)) {
      bool all = true;
      for (ValueId id : node.inputs) all = all && is_bf16_[Root(id)];
      for (ValueId id : node.outputs) is_bf16_[Index(id)] = all;
    }
  }

  void Cast(const Node& node) {
    const DType from = TypeOf(node.inputs[0]).dtype;
    const DType to = TypeOf(node.outputs[0]).dtype;
    if (to == DType::kF32) {
      is_bf16_[Index(node.outputs[0])] = from == DType::kBF16 ||
                                         from == DType::kBool ||
                                         is_bf16_[Root(node.inputs[0])];
    } else if (from == DType::kBool) {
      SetRange(node.outputs[0], Range{0, 1});
    } else if (from == DType::kI32 && to == DType::kI64) {
      SetRange(node.outputs[0], RangeOf(node.inputs[0]));
    }
  }

  MaybeRange RangeOf(ValueId id) const { return ranges_[Root(id)]; }
  void SetRange(ValueId id, MaybeRange range) {
    const DType dtype = TypeOf(id).dtype;
    if (dtype != DType::kI32 && dtype != DType::kI64) return;
    ranges_[Index(id)] = range;
  }

  const Graph& graph_;
  const std::vector<ValueId> roots_;
  std::vector<MaybeRange> ranges_;  // by root
  std::vector<bool> is_bf16_;       // by root
};

}  // namespace

std::vector<std::string> LosslessCodecs(const Graph& graph) {
  const Analysis analysis(graph);
  std::vector<std::string> codecs(graph.values.size());
  for (size_t v = 0; v < codecs.size(); ++v) codecs[v] = analysis.CodecOf(v);
  return codecs;
}

std::vector<std::optional<IntegerRange>> IntegerRanges(const Graph& graph) {
  return Analysis(graph).ranges();
}

}  // namespace loadline::passes
