// Common steps around an operator's evaluation: widen, check sizes before
// allocating, evaluate, narrow. Tested in tests/models/onnx_fold_test.cc.
#include "models/onnx/fold.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

FoldRule FindFoldRule(const std::string& op_type) {
  if (FoldRule rule = FindMovementRule(op_type)) return rule;
  if (FoldRule rule = FindIndexRule(op_type)) return rule;
  return FindArithmeticRule(op_type);
}

// Number of leading inputs that an evaluation requires. The checker has
// compared the count with the schema, but an input may still be empty.
size_t RequiredInputs(const std::string& op_type) {
  for (const char* three : {"Where", "Range", "Slice", "OneHot", "Scatter",
                            "ScatterElements", "ScatterND"}) {
    if (op_type == three) return 3;
  }
  for (const char* two :
       {"Reshape",    "Unsqueeze",   "Expand",    "Tile",
        "Gather",     "Add",         "Sub",       "Mul",
        "Div",        "Mod",         "Pow",       "Equal",
        "Less",       "LessOrEqual", "Greater",   "GreaterOrEqual",
        "And",        "Or",          "Xor",       "CastLike",
        "BitwiseAnd", "BitwiseOr",   "BitwiseXor"}) {
    if (op_type == two) return 2;
  }
  return 1;
}

}  // namespace

Ints FoldContext::IntsOf(size_t i, const Ints& fallback) const {
  return Has(i) ? in[i]->ints : fallback;
}

absl::Status FoldContext::CheckSize(const Ints& dims) const {
  LOADLINE_ASSIGN_OR_RETURN(int64_t count, ElementCount(dims));
  if (count <= max_elements) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a constant of ", count, " elements is beyond the limit of ",
                   max_elements));
}

bool CanFold(const std::string& op_type) {
  return op_type == "Constant" || FindFoldRule(op_type) != nullptr;
}

absl::StatusOr<std::vector<Tensor>> Fold(const onnx::NodeProto& node,
                                         absl::Span<const Tensor* const> inputs,
                                         int64_t max_elements) {
  const FoldRule rule = FindFoldRule(node.op_type());
  if (rule == nullptr) return absl::UnimplementedError("not folded");
  std::vector<Wide> wide(inputs.size());
  FoldContext context{node, {}, max_elements};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      context.in.push_back(nullptr);
      continue;
    }
    if (!CanWiden(inputs[i]->type.dtype)) {
      return absl::UnimplementedError("16-bit floats are not folded");
    }
    LOADLINE_RETURN_IF_ERROR(context.CheckSize(inputs[i]->type.dims));
    wide[i] = Widen(*inputs[i]);
    context.in.push_back(&wide[i]);
  }
  for (size_t i = 0; i < RequiredInputs(node.op_type()); ++i) {
    if (!context.Has(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<Wide> results, rule(context));
  std::vector<Tensor> tensors;
  for (const Wide& result : results) {
    LOADLINE_ASSIGN_OR_RETURN(int64_t count, ElementCount(result.dims));
    if (count != result.size()) {
      return absl::InvalidArgumentError("an input has the wrong type");
    }
    tensors.push_back(Narrow(result));
  }
  return tensors;
}

}  // namespace loadline::models::onnx_internal
