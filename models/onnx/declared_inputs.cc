// Reads the file before anything is checked or converted, so that inputs can be
// shown even for a model that cannot be imported yet. Tested in
// tests/models/onnx_import_test.cc.
#include "models/onnx/declared_inputs.h"

#include <set>
#include <utility>

#include "models/onnx/input_shapes.h"
#include "models/onnx/model_file.h"
#include "models/onnx/supported.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace onnx_internal {

DeclaredInput Declared(const onnx::ValueInfoProto& input) {
  DeclaredInput declared;
  declared.name = input.name();
  if (!input.type().tensor_type().has_shape()) return declared;
  declared.axes.emplace();
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    DeclaredAxis axis;
    if (dim.has_dim_value()) axis.size = dim.dim_value();
    axis.name = dim.dim_param();
    declared.axes->push_back(std::move(axis));
  }
  return declared;
}

}  // namespace onnx_internal

absl::StatusOr<DeclaredModel> ReadDeclared(const std::string& path,
                                           const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      const onnx::ModelProto proto,
      onnx_internal::ReadModelFile(path, options.max_bytes));
  const std::set<std::string> initializers =
      onnx_internal::InitializerNames(proto.graph());
  const std::set<std::string> unread =
      onnx_internal::UnreadInputs(proto.graph());
  DeclaredModel model;
  for (const auto& input : proto.graph().input()) {
    if (initializers.count(input.name()) > 0) continue;
    if (unread.count(input.name()) > 0) {
      model.unread_inputs.push_back(input.name());
      continue;
    }
    model.inputs.push_back(onnx_internal::Declared(input));
  }
  for (const auto& output : proto.graph().output()) {
    model.outputs.push_back(onnx_internal::Declared(output));
  }
  return model;
}

absl::StatusOr<std::vector<DeclaredInput>> ReadDeclaredInputs(
    const std::string& path, const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(DeclaredModel model, ReadDeclared(path, options));
  return std::move(model.inputs);
}

absl::StatusOr<std::vector<std::string>> ReadDeclaredOutputs(
    const std::string& path, const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(const DeclaredModel model,
                            ReadDeclared(path, options));
  std::vector<std::string> names;
  for (const DeclaredInput& output : model.outputs) {
    names.push_back(output.name);
  }
  return names;
}

std::optional<int64_t> GivenSize(const DeclaredInput& input, size_t axis,
                                 const ImportOptions& options) {
  const auto shape = options.input_shapes.find(input.name);
  if (shape != options.input_shapes.end() &&
      shape->second.size() == input.axes->size()) {
    return shape->second[axis];
  }
  const std::string& name = (*input.axes)[axis].name;
  const auto named = options.dims.find(name);
  if (!name.empty() && named != options.dims.end()) return named->second;
  if (axis == 0) return options.batch ? options.batch : options.default_batch;
  return std::nullopt;
}

}  // namespace loadline::models
