// Tested in tests/executor/reference/check_gradients_test.cc.
#include "executor/reference/evaluate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::reference {
namespace {

using models::DType;
using models::Node;
using models::ValueId;

template <typename T>
std::vector<double> Numbers(const models::Tensor& tensor) {
  const auto contents = tensor.as<T>();
  return {contents.begin(), contents.end()};
}

// A view reads a stretch of its input.
void CopyView(const Node& node, const Array& from, Array& to) {
  const int64_t first = models::ViewOffsetBytes(node, to.type) /
                        models::DTypeBytes(to.type.dtype);
  const auto begin = from.values.begin() + first;
  to.values.assign(begin, begin + to.type.elements());
}

}  // namespace

absl::StatusOr<Array> ToArray(const models::Tensor& tensor) {
  switch (tensor.type.dtype) {
    case DType::kF32:
      return Array{tensor.type, Numbers<float>(tensor)};
    case DType::kF64:
      return Array{tensor.type, Numbers<double>(tensor)};
    case DType::kI64:
      return Array{tensor.type, Numbers<int64_t>(tensor)};
    case DType::kI32:
      return Array{tensor.type, Numbers<int32_t>(tensor)};
    case DType::kI8:
      return Array{tensor.type, Numbers<int8_t>(tensor)};
    case DType::kU8:
    case DType::kBool:
      return Array{tensor.type, Numbers<uint8_t>(tensor)};
    default:
      return absl::UnimplementedError(absl::StrCat(
          "no reference on ", models::DTypeName(tensor.type.dtype)));
  }
}

absl::StatusOr<std::vector<Array>> Evaluate(
    const models::Graph& graph, const std::vector<Array>& given,
    const executor::StepScalars& scalars) {
  std::vector<Array> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].type = graph.values[i].type;
    if (!graph.values[i].initial.has_value()) continue;
    LOADLINE_ASSIGN_OR_RETURN(values[i], ToArray(*graph.values[i].initial));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    values[models::Index(graph.inputs[i])] = given[i];
  }
  for (const Node& node : graph.nodes) {
    if (models::IsView(node)) {
      CopyView(node, values[models::Index(node.inputs[0])],
               values[models::Index(node.outputs[0])]);
      continue;
    }
    const auto found = References().find(node.op);
    if (found == References().end()) {
      return absl::UnimplementedError(
          absl::StrCat("no reference for ", node.op));
    }
    std::vector<const Array*> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(id == models::kNoValue ? nullptr
                                              : &values[models::Index(id)]);
    }
    std::vector<Array> outputs;
    for (ValueId id : node.outputs) {
      const models::TensorType& type = graph.value(id).type;
      outputs.push_back(
          {type, std::vector<double>(static_cast<size_t>(type.elements()))});
    }
    found->second(Call{node.attributes, inputs, outputs, scalars});
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[models::Index(node.outputs[i])] = std::move(outputs[i]);
    }
  }
  return values;
}

}  // namespace loadline::reference
