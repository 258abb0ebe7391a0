// Tested in tests/models/onnx_computed_parameters_test.cc.
#include "models/onnx/computed_parameters.h"

#include <cctype>

#include "absl/strings/string_view.h"
#include "models/onnx/initializer_names.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr char kInvented[] = "val";

// "transpose" of transpose_12.
std::string WithoutNumber(absl::string_view name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) {
    --end;
  }
  const bool numbered = end > 1 && end < name.size() && name[end - 1] == '_';
  return std::string(numbered ? name.substr(0, end - 1) : name);
}

bool MovesAll(const std::string& operation) {
  static const auto* const kMoves = new std::set<std::string>{
      "t",       "transpose", "permute",   "numpy_T",      "numpy_t",
      "view",    "reshape",   "unsqueeze", "_unsafe_view", "squeeze",
      "flatten", "movedim",   "swapaxes",  "contiguous",   "alias",
      "clone",   "unflatten", kInvented};
  return kMoves->count(operation) > 0;
}

bool TakesPart(const std::string& operation) {
  static const auto* const kTakes = new std::set<std::string>{
      "slice", "select",  "narrow", "split",       "split_with_sizes",
      "chunk", "getitem", "unbind", "tensor_split"};
  return kTakes->count(operation) > 0;
}

}  // namespace

std::optional<MovedParameter> FindMovedParameter(const ExportMarks& marks,
                                                 const std::string& name) {
  const auto computed = marks.computed_from.find(name);
  if (computed == marks.computed_from.end()) return std::nullopt;
  MovedParameter moved;
  std::set<std::string> values = {name};
  for (const std::string& source : computed->second) {
    const auto mark = marks.marks.find(source);
    if (mark == marks.marks.end()) {
      values.insert(source);
    } else if (mark->second == Mark::kParameter && moved.parameter.empty()) {
      moved.parameter = source;
    } else {
      return std::nullopt;  // of two tensors
    }
  }
  if (moved.parameter.empty()) return std::nullopt;
  for (const std::string& value : values) {
    const std::string operation =
        IsInventedName(value) ? kInvented : WithoutNumber(value);
    const bool part = TakesPart(operation);
    if (!part && !MovesAll(operation)) return std::nullopt;
    moved.part = moved.part || part;
    moved.moves.insert(operation);
  }
  return moved;
}

}  // namespace loadline::models::onnx_internal
