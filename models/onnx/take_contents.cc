// Tested in tests/models/onnx_import_test.cc and
// tests/models/onnx_hostile_test.cc.
#include "models/onnx/take_contents.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/declared_shapes.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/input_shapes.h"
#include "models/onnx/model_file.h"
#include "models/onnx/supported.h"
#include "models/onnx/widen_floats.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Initializers up to this size stay in the protobuf, because the converter and
// shape inference read shapes and axes.
constexpr int64_t kSmallBytes = 1024;

bool StaysInProto(const Tensor& tensor) {
  return tensor.data != nullptr && tensor.type.bytes() <= kSmallBytes;
}

// The tensor; without data if its file is missing and the options allow that.
absl::StatusOr<Tensor> ReadInitializer(const onnx::TensorProto& proto,
                                       const std::string& folder,
                                       const ImportOptions& options,
                                       int64_t* budget_bytes, int* missing) {
  absl::StatusOr<Tensor> tensor = ReadTensor(proto, folder, budget_bytes);
  if (!options.allow_missing_weights || !absl::IsNotFound(tensor.status())) {
    return tensor;
  }
  ++*missing;
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, TypeOfTensor(proto));
  return Tensor{std::move(type), nullptr};
}

// InvalidArgument for a size given to an axis that no input has: a typo.
absl::Status CheckDimNames(const ImportOptions& options,
                           const std::set<std::string>& axes) {
  for (const auto& [name, size] : options.dims) {
    if (axes.count(name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a size is given for the axis '", name, "', which no input has; ",
        axes.empty()
            ? "no axis of the model has a name"
            : absl::StrCat("axes with a name: ", absl::StrJoin(axes, ", "))));
  }
  return absl::OkStatus();
}

}  // namespace

void DropUnneededNodes(onnx::GraphProto* graph) {
  const std::vector<bool> needed = NeededNodes(*graph);
  size_t n = 0;
  EraseIf(graph->mutable_node(),
          [&](const onnx::NodeProto*) { return !needed[n++]; });
}

absl::Status TakeInitializers(const std::string& folder,
                              const ImportOptions& options,
                              const std::set<DType>& widened,
                              PreparedModel* prepared) {
  int64_t budget_bytes = options.max_bytes;
  auto* graph = prepared->proto.mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::TensorProto> small;
  int missing = 0;
  bool left_out = false;
  const std::set<std::string> needed = NeededNames(*graph);
  for (onnx::TensorProto& proto : *graph->mutable_initializer()) {
    if (proto.name().empty()) {
      return absl::InvalidArgumentError("an initializer has no name");
    }
    if (needed.count(proto.name()) == 0 &&
        !DTypeFromOnnx(proto.data_type(), "").ok()) {
      left_out = true;
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(
        Tensor tensor,
        ReadInitializer(proto, folder, options, &budget_bytes, &missing));
    const bool widens = widened.count(tensor.type.dtype) > 0;
    if (widens) tensor = AsF32(tensor);
    if (!prepared->initializers.emplace(proto.name(), tensor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two initializers are named '", proto.name(), "'"));
    }
    prepared->initializer_order.push_back(proto.name());
    if (StaysInProto(tensor)) {
      onnx::TensorProto* kept = small.Add();
      *kept = proto;
      if (widens) kept->set_data_type(DTypeToOnnx(DType::kF32));
      WriteTensor(tensor, kept);
    } else {
      onnx::TensorProto().Swap(&proto);  // clear() would keep the memory
    }
  }
  graph->mutable_initializer()->Swap(&small);
  if (left_out) DropUnneededNodes(graph);
  if (missing > 0) {
    prepared->warnings.push_back(
        absl::StrCat("the files of external data of ", missing,
                     " tensors are missing: the step can be planned, not run"));
  }
  return absl::OkStatus();
}

absl::Status SetInputs(const ImportOptions& options,
                       const std::set<std::string>& unread,
                       PreparedModel* prepared) {
  auto* graph = prepared->proto.mutable_graph();
  prepared->declared = DeclaredShapes(*graph);
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  std::set<std::string> names, axes;
  for (const auto& input : graph->input()) {
    if (prepared->initializers.count(input.name()) > 0) continue;
    if (!names.insert(input.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two inputs are named '", input.name(), "'"));
    }
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) axes.insert(dim.dim_param());
    }
    if (unread.count(input.name()) > 0) continue;
    prepared->declared.AddInput(input);
    LOADLINE_ASSIGN_OR_RETURN(
        TensorType type, ResolveInput(input, options, &prepared->warnings));
    onnx::ValueInfoProto* info = inputs.Add();
    info->set_name(input.name());
    SetType(type, info);
    prepared->inputs.emplace_back(input.name(), std::move(type));
  }
  for (const auto& [name, shape] : options.input_shapes) {
    if (names.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a shape is given for '", name, "', which is no input of the model"));
    }
  }
  LOADLINE_RETURN_IF_ERROR(CheckDimNames(options, axes));
  for (const std::string& name : prepared->initializer_order) {
    const Tensor& tensor = prepared->initializers.at(name);
    if (StaysInProto(tensor)) continue;
    onnx::ValueInfoProto* info = inputs.Add();
    info->set_name(name);
    SetType(tensor.type, info);
  }
  graph->mutable_input()->Swap(&inputs);
  // Intermediate shapes are inferred anew, and then compared with the file's.
  graph->clear_value_info();
  return absl::OkStatus();
}

}  // namespace loadline::models::onnx_internal
