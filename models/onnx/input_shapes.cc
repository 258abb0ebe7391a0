// A fixed axis is part of the traced program (its size may be built into
// reshapes), so options never override it; they only set open axes. Tested in
// tests/models/onnx_import_test.cc.
#include "models/onnx/input_shapes.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "models/onnx/model_file.h"
#include "models/onnx/supported.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Keeps later products of a few dimensions well within int64.
constexpr int64_t kMaxDim = int64_t{1} << 40;

absl::StatusOr<int64_t> ResolveOpenAxis(const DeclaredInput& input, size_t axis,
                                        const ImportOptions& options) {
  const std::optional<int64_t> size = GivenSize(input, axis, options);
  if (size.has_value()) return *size;
  const std::string& name = (*input.axes)[axis].name;
  return absl::InvalidArgumentError(
      absl::StrCat("input '", input.name, "': axis ", axis,
                   name.empty() ? "" : absl::StrCat(" ('", name, "')"),
                   " is open; give ", axis == 0 ? "a batch size, " : "",
                   "its size by name, or the input's whole shape"));
}

}  // namespace

absl::StatusOr<TensorType> ResolveInput(const onnx::ValueInfoProto& input,
                                        const ImportOptions& options,
                                        std::vector<std::string>* warnings) {
  const std::string what = absl::StrCat("input '", input.name(), "'");
  if (!input.type().has_tensor_type()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is not a dense tensor"));
  }
  const auto& tensor = input.type().tensor_type();
  LOADLINE_ASSIGN_OR_RETURN(DType dtype,
                            DTypeFromOnnx(tensor.elem_type(), what));
  const auto given = options.input_shapes.find(input.name());
  const bool has_given = given != options.input_shapes.end();
  if (!tensor.has_shape() && !has_given) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has no shape in the file; give its whole shape"));
  }
  if (!tensor.has_shape()) return MakeTensorType(dtype, given->second);
  const auto& shape = tensor.shape();
  if (has_given && static_cast<int>(given->second.size()) != shape.dim_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", shape.dim_size(), " axes, not the ",
                     given->second.size(), " given"));
  }
  const DeclaredInput declared = Declared(input);
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    const auto& dim = shape.dim(axis);
    int64_t size = dim.dim_value();
    if (!dim.has_dim_value()) {
      LOADLINE_ASSIGN_OR_RETURN(
          size, ResolveOpenAxis(declared, static_cast<size_t>(axis), options));
    } else if (has_given && given->second[static_cast<size_t>(axis)] != size) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": axis ", axis, " is fixed to ", size, " in the file, not ",
          given->second[static_cast<size_t>(axis)],
          "; export the model again with a dynamic axis"));
    } else if (axis == 0 && options.batch && *options.batch != size) {
      warnings->push_back(absl::StrCat(
          what, ": its first axis is fixed to ", size,
          " in the file, so the batch size of ", *options.batch,
          " does not apply to it; export with a dynamic axis to choose"));
    }
    if (size < 0 || size > kMaxDim) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": axis ", axis, " has the absurd size ", size));
    }
    dims.push_back(size);
  }
  absl::StatusOr<TensorType> type = MakeTensorType(dtype, std::move(dims));
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", type.status().message()));
  }
  return type;
}

std::set<std::string> UnreadInputs(const onnx::GraphProto& graph) {
  const std::set<std::string> initializers = InitializerNames(graph);
  const std::set<std::string> needed = NeededNames(graph);
  std::set<std::string> unread;
  bool any_read = false;
  for (const auto& input : graph.input()) {
    if (initializers.count(input.name()) > 0) continue;
    if (needed.count(input.name()) > 0) {
      any_read = true;
    } else {
      unread.insert(input.name());
    }
  }
  return any_read ? unread : std::set<std::string>();
}

void SetType(const TensorType& type, onnx::ValueInfoProto* info) {
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(DTypeToOnnx(type.dtype));
  tensor->mutable_shape()->clear_dim();
  for (int64_t d : type.dims) {
    tensor->mutable_shape()->add_dim()->set_dim_value(d);
  }
}

}  // namespace loadline::models::onnx_internal
