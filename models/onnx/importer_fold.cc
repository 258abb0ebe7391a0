// The part of Importer that folds constants. Whatever the file contains, memory
// is limited by max_folded_bytes and work by kMaxFoldedElements. Tested in
// tests/models/onnx_fold_test.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/classify.h"
#include "models/onnx/fold.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kMaxFoldedElements = int64_t{1} << 30;

}  // namespace

absl::Status Importer::DefineConstant(const std::string& name, Tensor tensor) {
  if (name.empty()) return absl::OkStatus();
  folded_bytes_ += tensor.type.bytes();
  folded_elements_ += tensor.type.elements();
  if (folded_bytes_ > options_.max_folded_bytes ||
      folded_elements_ > kMaxFoldedElements) {
    return absl::ResourceExhaustedError(
        "the model's constants grow beyond the limit while folding");
  }
  Note(name, tensor);
  Binding binding;
  binding.constant = std::move(tensor);
  bindings_[name] = std::move(binding);
  return absl::OkStatus();
}

absl::Status Importer::FoldConstantNode(const onnx::NodeProto& node) {
  if (node.attribute_size() != 1 || node.output_size() != 1) {
    return absl::InvalidArgumentError("needs exactly one value");
  }
  const auto& a = node.attribute(0);
  if (a.name() == "value") {
    int64_t budget_bytes = options_.max_bytes;
    LOADLINE_ASSIGN_OR_RETURN(Tensor tensor,
                              ReadTensor(a.t(), "", &budget_bytes));
    return DefineConstant(node.output(0), std::move(tensor));
  }
  if (a.name() == "value_float" || a.name() == "value_floats") {
    const std::vector<float> v(a.floats().begin(), a.floats().end());
    const bool scalar = a.name() == "value_float";
    const float one = a.f();
    Ints dims;
    if (!scalar) dims.push_back(a.floats_size());
    return DefineConstant(
        node.output(0),
        MakeTensor({DType::kF32, dims},
                   scalar ? static_cast<const void*>(&one) : v.data()));
  }
  if (a.name() == "value_int" || a.name() == "value_ints") {
    const Ints v(a.ints().begin(), a.ints().end());
    const bool scalar = a.name() == "value_int";
    const int64_t one = a.i();
    Ints dims;
    if (!scalar) dims.push_back(a.ints_size());
    return DefineConstant(
        node.output(0),
        MakeTensor({DType::kI64, dims},
                   scalar ? static_cast<const void*>(&one) : v.data()));
  }
  Unsupported(node, absl::StrCat("attribute ", a.name()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Importer::TryFold(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  if (!CanFold(op)) return false;
  if ((op == "Shape" || op == "Size") && Has(node, 0) &&
      Input(node, 0).id != kNoValue) {
    // Only the type matters, so the data need not be constant.
    const TensorType& type = Type(node, 0);
    if (op == "Size") {
      const int64_t count = type.elements();
      LOADLINE_RETURN_IF_ERROR(DefineConstant(
          node.output(0), MakeTensor({DType::kI64, {}}, &count)));
      return true;
    }
    const int64_t rank = type.rank();
    auto position = [rank](int64_t p) {
      return std::clamp<int64_t>(p < 0 ? std::max(p, -rank) + rank : p, 0,
                                 rank);
    };
    const int64_t start = position(IntAttribute(node, "start", 0));
    const int64_t end =
        std::max(start, position(IntAttribute(node, "end", rank)));
    LOADLINE_RETURN_IF_ERROR(DefineConstant(
        node.output(0),
        Int64Tensor(absl::MakeSpan(type.dims).subspan(
            static_cast<size_t>(start), static_cast<size_t>(end - start)))));
    return true;
  }
  if (op == "CastLike" && IsConstant(node, 0) && !IsConstant(node, 1)) {
    // Only the type of the second input matters.
    onnx::NodeProto cast = node;
    cast.set_op_type("Cast");
    cast.mutable_input()->RemoveLast();
    auto* to = cast.add_attribute();
    to->set_name("to");
    to->set_i(DTypeToOnnx(Type(node, 1).dtype));
    return TryFold(cast);
  }
  std::vector<const Tensor*> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    if (!Has(node, i)) {
      inputs.push_back(nullptr);
      continue;
    }
    if (!IsConstant(node, i)) return false;
    inputs.push_back(&*Input(node, i).constant);
  }
  // Elements are widened to 8 bytes during the evaluation.
  absl::StatusOr<std::vector<Tensor>> results =
      Fold(node, inputs, options_.max_folded_bytes / 8);
  if (!results.ok()) {
    const bool emit = absl::IsUnimplemented(results.status()) ||
                      absl::IsResourceExhausted(results.status());
    if (emit && FindRule(op) != nullptr) return false;
    return results.status();
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (static_cast<size_t>(i) >= results->size()) {
      return absl::InvalidArgumentError("has too many outputs");
    }
    LOADLINE_RETURN_IF_ERROR(DefineConstant(
        node.output(i), std::move((*results)[static_cast<size_t>(i)])));
  }
  return true;
}

}  // namespace loadline::models::onnx_internal
