// The library lists every node after the first error too, because their inputs
// have no type, and a node without a name by its operator only. So the first
// node that does not fit is searched for: that of the shortest prefix of the
// graph that fails. Tested in tests/models/onnx_hostile_test.cc.
#include "models/onnx/check_shapes.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/guard.h"
#include "models/onnx/model_file.h"
#include "models/onnx/supported.h"
#include "onnx/shape_inference/implementation.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr char kDoNotFit[] = "the model's shapes do not fit";

absl::Status Infer(bool strict, onnx::ModelProto* model) {
  return Guard(kDoNotFit, [&] {
    onnx::shape_inference::InferShapes(
        *model, onnx::OpSchemaRegistry::Instance(),
        onnx::ShapeInferenceOptions(/*check_type=*/strict,
                                    /*strict_mode=*/strict ? 1 : 0,
                                    /*data_prop=*/false));
  });
}

// The model with its first `count` nodes and without outputs.
onnx::ModelProto Prefix(const onnx::ModelProto& model, int count) {
  onnx::ModelProto prefix;
  prefix.set_ir_version(model.ir_version());
  *prefix.mutable_opset_import() = model.opset_import();
  *prefix.mutable_functions() = model.functions();
  const onnx::GraphProto& from = model.graph();
  onnx::GraphProto* graph = prefix.mutable_graph();
  graph->set_name(from.name());
  *graph->mutable_input() = from.input();
  *graph->mutable_initializer() = from.initializer();
  for (int n = 0; n < count; ++n) *graph->add_node() = from.node(n);
  return prefix;
}

std::string TypeText(const onnx::TypeProto& type) {
  if (!type.has_tensor_type()) return "no tensor";
  const auto& tensor = type.tensor_type();
  const auto dtype = DTypeFromOnnx(tensor.elem_type(), "");
  const std::string name =
      dtype.ok() ? std::string(DTypeName(*dtype)) : std::string("?");
  if (!tensor.has_shape()) return absl::StrCat(name, " of unknown shape");
  std::vector<std::string> dims;
  for (const auto& dim : tensor.shape().dim()) {
    dims.push_back(dim.has_dim_value() ? absl::StrCat(dim.dim_value()) : "?");
  }
  return absl::StrCat(name, "[", absl::StrJoin(dims, ","), "]");
}

// "x f32[2,3], w f32[3]"
std::string WhatIsRead(const onnx::NodeProto& node,
                       const onnx::GraphProto& graph) {
  std::map<std::string, std::string> types;
  for (const auto* infos : {&graph.value_info(), &graph.input()}) {
    for (const auto& info : *infos) types[info.name()] = TypeText(info.type());
  }
  for (const auto& tensor : graph.initializer()) {
    const auto type = TypeOfTensor(tensor);
    if (type.ok()) types[tensor.name()] = type->ToString();
  }
  std::vector<std::string> read;
  for (const std::string& name : node.input()) {
    const auto type = types.find(name);
    if (type != types.end()) {
      read.push_back(absl::StrCat(name, " ", type->second));
    }
  }
  return absl::StrJoin(read, ", ");
}

// The innermost of the library's nested messages.
std::string Reason(const absl::Status& status) {
  std::string text(status.message());
  const size_t last = text.rfind("Error] ");
  if (last != std::string::npos) text = text.substr(last + 7);
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

absl::Status CheckShapes(onnx::ModelProto* model) {
  const absl::Status status = Infer(/*strict=*/true, model);
  if (status.ok()) return status;
  int fits = 0, fails = model->graph().node_size() + 1;
  absl::Status first;
  while (fails - fits > 1) {
    const int count = fits + (fails - fits) / 2;
    onnx::ModelProto prefix = Prefix(*model, count);
    const absl::Status of_prefix = Infer(/*strict=*/true, &prefix);
    if (of_prefix.ok()) {
      fits = count;
    } else {
      fails = count;
      first = of_prefix;
    }
  }
  if (fits == model->graph().node_size()) return status;
  const onnx::NodeProto& node = model->graph().node(fits);
  onnx::ModelProto before = Prefix(*model, fits);
  AddKnownShapes(&before);
  const std::string read = WhatIsRead(node, before.graph());
  return absl::InvalidArgumentError(
      absl::StrCat(kDoNotFit, ": ", NodeLabel(node), ": ", Reason(first),
                   read.empty() ? "" : "; it reads ", read));
}

void AddKnownShapes(onnx::ModelProto* model) {
  onnx::ModelProto copy = *model;  // a failure may leave it half done
  if (Infer(/*strict=*/false, &copy).ok()) *model = std::move(copy);
}

}  // namespace loadline::models::onnx_internal
