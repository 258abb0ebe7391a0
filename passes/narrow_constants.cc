// Works dimension by dimension, and only if every reader's other operands still
// broadcast to the full shape, so that no result changes its type. Tested in
// tests/passes/narrow_constants_test.cc.
#include "passes/narrow_constants.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::Ints;
using models::Node;
using models::Tensor;
using models::ValueId;

bool Broadcasts(const Node& node) {
  static const auto* const kOps = new std::set<std::string>{
      "Add",   "Sub",  "Mul",         "Div",     "Pow",
      "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
      "And",   "Or",   "Where"};
  return kOps->count(node.op) > 0;
}

// Bytes of one element of `axis`, and of the whole axis.
struct AxisBytes {
  int64_t step = 0;
  int64_t axis = 0;
};

AxisBytes BytesAlong(const models::TensorType& type, size_t axis) {
  int64_t step = models::DTypeBytes(type.dtype);
  for (size_t i = axis + 1; i < type.dims.size(); ++i) step *= type.dims[i];
  return {step, step * type.dims[axis]};
}

bool RepeatsAlong(const Tensor& tensor, size_t axis) {
  const AxisBytes along = BytesAlong(tensor.type, axis);
  const std::byte* const bytes = tensor.data->data();
  for (int64_t at = 0; at < tensor.type.bytes(); at += along.axis) {
    for (int64_t i = along.step; i < along.axis; i += along.step) {
      if (std::memcmp(bytes + at, bytes + at + i,
                      static_cast<size_t>(along.step)) != 0) {
        return false;
      }
    }
  }
  return true;
}

Tensor FirstAlong(const Tensor& tensor, size_t axis) {
  const AxisBytes along = BytesAlong(tensor.type, axis);
  std::vector<std::byte> first;
  for (int64_t at = 0; at < tensor.type.bytes(); at += along.axis) {
    const std::byte* const from = tensor.data->data() + at;
    first.insert(first.end(), from, from + along.step);
  }
  models::TensorType type = tensor.type;
  type.dims[axis] = 1;
  return MakeTensor(std::move(type), first.data());
}

// Whether `node` has the same output type if `id` has one element in the
// dimension `from_end` from the last.
bool MakesUp(const Graph& graph, const Node& node, ValueId id,
             size_t from_end) {
  if (!Broadcasts(node)) return false;
  const auto dim = [&](ValueId value) -> int64_t {
    const Ints& dims = graph.value(value).type.dims;
    return dims.size() < from_end ? 1 : dims[dims.size() - from_end];
  };
  const int64_t made = dim(node.outputs[0]);
  return std::any_of(
      node.inputs.begin(), node.inputs.end(),
      [&](ValueId other) { return other != id && dim(other) == made; });
}

}  // namespace

absl::Status NarrowConstants(Graph& graph) {
  const GraphIndex index = models::IndexGraph(graph);
  const std::vector<bool> named = NamedByGraph(graph);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    models::Value& value = graph.values[v];
    if (value.kind != models::ValueKind::kConstant || named[v] ||
        value.type.elements() < 2) {
      continue;
    }
    const ValueId id{static_cast<int32_t>(v)};
    for (size_t axis = 0; axis < value.type.dims.size(); ++axis) {
      const size_t from_end = value.type.dims.size() - axis;
      const std::vector<models::NodeId>& readers = index.consumers[v];
      const bool made_up_for = std::all_of(
          readers.begin(), readers.end(), [&](models::NodeId reader) {
            return MakesUp(graph, graph.node(reader), id, from_end);
          });
      if (value.type.dims[axis] < 2 || !made_up_for ||
          !RepeatsAlong(*value.initial, axis)) {
        continue;
      }
      value.initial = FirstAlong(*value.initial, axis);
      value.type = value.initial->type;
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
