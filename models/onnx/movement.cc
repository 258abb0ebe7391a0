// Tested through the rules that use it, in tests/models/onnx_rules_test.cc and
// tests/conformance/imported_operators_test.cc.
#include "models/onnx/movement.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {

Tensor AxisPositions(int64_t count, size_t rank, size_t axis) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  Ints dims(rank, 1);
  dims[axis] = count;
  return MakeTensor({DType::kI64, std::move(dims)}, numbers.data());
}

absl::StatusOr<ValueId> EmitTake(Importer& importer,
                                 const onnx::NodeProto& node, ValueId x,
                                 int64_t axis, const Ints& positions) {
  const ValueId indices = importer.UseTensor(
      absl::StrCat(node.name(), "/positions"), Int64Tensor(positions));
  return importer.EmitValue(node, "Gather", {x, indices}, {{"axis", axis}});
}

absl::StatusOr<ValueId> EmitRepeat(Importer& importer,
                                   const onnx::NodeProto& node, ValueId x,
                                   const Ints& apart, const Ints& wide,
                                   const Ints& result) {
  LOADLINE_ASSIGN_OR_RETURN(
      x, importer.EmitValue(node, "Reshape", {x}, {{"shape", apart}}));
  LOADLINE_ASSIGN_OR_RETURN(
      x, importer.EmitValue(node, "Expand", {x}, {{"shape", wide}}));
  return importer.EmitValue(node, "Reshape", {x}, {{"shape", result}});
}

}  // namespace loadline::models::onnx_internal
