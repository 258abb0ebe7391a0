// Attributes and optional inputs of an ONNX node, and metadata. The checker has
// compared the kinds of attributes with the operator's schema. Returns
// `fallback` if absent.
#ifndef LOADLINE_MODELS_ONNX_NODE_ATTRIBUTES_H_
#define LOADLINE_MODELS_ONNX_NODE_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/attributes.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Whether the node has input i, which may be optional.
inline bool HasInput(const onnx::NodeProto& node, int i) {
  return node.input_size() > i && !node.input(i).empty();
}

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node,
                                          absl::string_view name);
int64_t IntAttribute(const onnx::NodeProto& node, absl::string_view name,
                     int64_t fallback);
// ONNX stores floats, while authors write decimals such as 0.1 or 1e-5. Returns
// the double nearest to the shortest decimal that gives the float.
double FloatAttribute(const onnx::NodeProto& node, absl::string_view name,
                      double fallback);
std::string StringAttribute(const onnx::NodeProto& node, absl::string_view name,
                            absl::string_view fallback);
std::vector<std::string> StringsAttribute(const onnx::NodeProto& node,
                                          absl::string_view name);
Ints IntsAttribute(const onnx::NodeProto& node, absl::string_view name,
                   const Ints& fallback = {});

double ShortestDecimal(float value);

// What the exporter says under `key` of a graph, a node or a value; "" if
// nothing.
template <typename Proto>
absl::string_view Metadata(const Proto& proto, absl::string_view key) {
  for (const auto& entry : proto.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return {};
}

// The key under which torch's newer exporter keeps the call of PyTorch that a
// node was made from.
inline constexpr char kPytorchCall[] = "pkg.torch.onnx.fx_node";

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_NODE_ATTRIBUTES_H_
