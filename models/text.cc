// Writes a Graph as text: one line per value that no node makes, then one line
// per node. text_reader.cc is the reader. Tested in tests/models/text_test.cc.
#include "models/text.h"

#include <cmath>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace loadline::models {
namespace {

constexpr int64_t kMostInlineElements = 16;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

std::string IdText(ValueId id) {
  return id == kNoValue ? "-" : absl::StrCat("%", Index(id));
}

absl::string_view KindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kParameter:
      return "parameter";
    case ValueKind::kState:
      return "state";
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kIntermediate:
      return "intermediate";
  }
  return "";
}

absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kLoss:
      return "loss";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "";
}

std::string HexText(const Tensor& tensor) {
  return absl::StrCat("hex \"",
                      absl::BytesToHexString(absl::string_view(
                          reinterpret_cast<const char*>(tensor.data->data()),
                          tensor.data->size())),
                      "\"");
}

// "{1, 2}", for elements that decimal numbers represent exactly.
template <typename T>
std::string NumbersText(const Tensor& tensor) {
  std::string text = "{";
  absl::string_view separator = "";
  for (const T element : tensor.as<T>()) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(element)) return HexText(tensor);
      // A float is written as the equal double.
      absl::StrAppend(&text, separator,
                      FloatToText(static_cast<double>(element)));
    } else {
      absl::StrAppend(&text, separator, static_cast<int64_t>(element));
    }
    separator = ", ";
  }
  return text + "}";
}

std::string InlineText(const Tensor& tensor) {
  switch (tensor.type.dtype) {
    case DType::kF32:
      return NumbersText<float>(tensor);
    case DType::kF64:
      return NumbersText<double>(tensor);
    case DType::kI64:
      return NumbersText<int64_t>(tensor);
    case DType::kI32:
      return NumbersText<int32_t>(tensor);
    case DType::kU8:
      return NumbersText<uint8_t>(tensor);
    case DType::kI8:
      return NumbersText<int8_t>(tensor);
    case DType::kBool:
    case DType::kF16:
    case DType::kBF16:
      return HexText(tensor);
  }
  return "";
}

// FNV-1a, 64 bits.
std::string HashText(const Tensor& tensor) {
  uint64_t hash = 14695981039346656037u;
  for (std::byte b : *tensor.data) {
    hash = (hash ^ static_cast<uint64_t>(b)) * 1099511628211u;
  }
  return absl::StrFormat("%016x", hash);
}

// The key of `tensor` in the side map; adds it if it is new.
std::string KeyOf(const Tensor& tensor, LargeContents* large) {
  const std::string hash = HashText(tensor);
  if (large == nullptr) return hash;
  std::string key = hash;
  for (int suffix = 1;; ++suffix) {
    const auto [it, is_new] = large->try_emplace(key, tensor);
    if (is_new ||
        (it->second.type == tensor.type && *it->second.data == *tensor.data)) {
      return key;
    }
    key = absl::StrCat(hash, "-", suffix);
  }
}

std::string ContentsText(const Tensor& tensor, LargeContents* large) {
  if (tensor.type.elements() <= kMostInlineElements) {
    return InlineText(tensor);
  }
  return absl::StrCat("hash ", KeyOf(tensor, large));
}

std::string NodeText(const Graph& graph, const Node& node) {
  std::string text;
  absl::string_view separator = "";
  for (ValueId id : node.outputs) {
    absl::StrAppend(&text, separator, IdText(id), " ",
                    Quoted(graph.value(id).name), " ",
                    graph.value(id).type.ToString());
    separator = ", ";
  }
  absl::StrAppend(&text, " = ", node.op, " ", Quoted(node.name), " (");
  separator = "";
  for (ValueId id : node.inputs) {
    absl::StrAppend(&text, separator, IdText(id));
    separator = ", ";
  }
  absl::StrAppend(&text, ") {");
  separator = "";
  for (const auto& [name, value] : node.attributes.map()) {
    absl::StrAppend(&text, separator, name, " = ", AttributeToText(value));
    separator = ", ";
  }
  absl::StrAppend(&text, "} ", PhaseName(node.phase), "\n");
  return text;
}

std::string IdListText(absl::string_view word,
                       const std::vector<ValueId>& ids) {
  std::string text(word);
  absl::string_view separator = " ";
  for (ValueId id : ids) {
    absl::StrAppend(&text, separator, IdText(id));
    separator = ", ";
  }
  return text + "\n";
}

}  // namespace

std::string GraphToText(const Graph& graph, LargeContents* large) {
  std::string text =
      absl::StrCat("loadline.graph/1 ", Quoted(graph.name), "\n");
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.kind == ValueKind::kIntermediate) continue;
    absl::StrAppend(&text, "%", i, " = ", KindName(value.kind), " ",
                    Quoted(value.name), " ", value.type.ToString());
    if (value.initial.has_value() && value.initial->data != nullptr) {
      absl::StrAppend(&text, " ", ContentsText(*value.initial, large));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, NodeText(graph, node));
  }
  absl::StrAppend(&text, IdListText("inputs", graph.inputs),
                  IdListText("outputs", graph.outputs));
  for (const auto& [old_version, new_version] : graph.updates) {
    absl::StrAppend(&text, "update ", IdText(old_version), " -> ",
                    IdText(new_version), "\n");
  }
  return text;
}

}  // namespace loadline::models
