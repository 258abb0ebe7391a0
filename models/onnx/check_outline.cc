// Tested in tests/models/onnx_hostile_test.cc.
#include "models/onnx/check_outline.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/onnx/function_size.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr size_t kMaxNameBytes = 4096;

// UTF-8, as ONNX demands: names are also keys of files that we write.
bool GoodName(const std::string& name) {
  return name.size() <= kMaxNameBytes && planner::IsUtf8(name) &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

absl::Status CheckOutputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& output : graph.output()) {
    if (names.insert(output.name()).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two outputs are named '", output.name(), "'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNames(const onnx::GraphProto& graph) {
  const absl::Status bad = absl::InvalidArgumentError(
      "the model has a name with control characters, one that is not UTF-8, or "
      "an absurdly long one; export it with other names");
  for (const auto& node : graph.node()) {
    if (!GoodName(node.name()) || !GoodName(node.op_type())) return bad;
    for (const auto& name : node.input()) {
      if (!GoodName(name)) return bad;
    }
    for (const auto& name : node.output()) {
      if (!GoodName(name)) return bad;
    }
  }
  for (const auto& tensor : graph.initializer()) {
    if (!GoodName(tensor.name())) return bad;
  }
  for (const auto& input : graph.input()) {
    if (!GoodName(input.name())) return bad;
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const onnx::GraphProto& graph, int most) {
  if (graph.node_size() <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the model has ", graph.node_size(), " nodes, and at most ", most,
      " are supported; fold its constants, or export loops with fewer "
      "iterations"));
}

absl::Status CheckOutline(const onnx::ModelProto& proto) {
  if (!proto.has_graph() || proto.graph().output_size() == 0) {
    return absl::InvalidArgumentError(
        "not an ONNX model: it has no graph with outputs");
  }
  LOADLINE_RETURN_IF_ERROR(CheckNodes(proto.graph()));
  LOADLINE_RETURN_IF_ERROR(CheckOutputs(proto.graph()));
  if (proto.graph().sparse_initializer_size() > 0) {
    return absl::InvalidArgumentError(
        "sparse initializers are not supported; export dense ones");
  }
  LOADLINE_RETURN_IF_ERROR(CheckFunctions(proto));
  return CheckNames(proto.graph());
}

}  // namespace loadline::models::onnx_internal
