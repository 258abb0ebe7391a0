// Tested in tests/models/onnx_import_test.cc.
#include "models/onnx/node_attributes.h"

#include <charconv>
#include <cmath>

namespace loadline::models::onnx_internal {

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node,
                                          absl::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (absl::string_view(attribute.name()) == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const onnx::NodeProto& node, absl::string_view name,
                     int64_t fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute != nullptr ? attribute->i() : fallback;
}

double FloatAttribute(const onnx::NodeProto& node, absl::string_view name,
                      double fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute != nullptr ? ShortestDecimal(attribute->f()) : fallback;
}

std::string StringAttribute(const onnx::NodeProto& node, absl::string_view name,
                            absl::string_view fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute != nullptr ? attribute->s() : std::string(fallback);
}

std::vector<std::string> StringsAttribute(const onnx::NodeProto& node,
                                          absl::string_view name) {
  const auto* attribute = FindAttribute(node, name);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

Ints IntsAttribute(const onnx::NodeProto& node, absl::string_view name,
                   const Ints& fallback) {
  const auto* attribute = FindAttribute(node, name);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

double ShortestDecimal(float value) {
  if (!std::isfinite(value)) return value;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  double result = value;
  std::from_chars(text, end.ptr, result);
  return result;
}

}  // namespace loadline::models::onnx_internal
