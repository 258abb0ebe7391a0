// Tested in tests/models/onnx_export_marks_test.cc.
#include "models/onnx/clip_at_numbers.h"

#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {
namespace {

// Whether bound `at` of a clamp is a number, from "...target=torch.ops.aten.
// clamp.Tensor](args = (%x, %scalar_tensor_default, %upper), kwargs = {})".
// Numbers become scalar tensors before they are exported.
bool IsNumberOfClamp(absl::string_view operation, size_t at) {
  constexpr char kClamp[] = "target=torch.ops.aten.clamp.Tensor](args = (";
  const size_t begin = operation.find(kClamp);
  if (begin == absl::string_view::npos) return false;
  operation.remove_prefix(begin + sizeof(kClamp) - 1);
  const std::vector<absl::string_view> arguments =
      absl::StrSplit(operation.substr(0, operation.find(')')), ", ");
  return at < arguments.size() &&
         absl::StartsWith(arguments[at], "%scalar_tensor");
}

}  // namespace

void ClipAtNumbers(onnx::GraphProto* graph) {
  for (auto& node : *graph->mutable_node()) {
    const bool lower = node.op_type() == "Max";
    if ((!lower && node.op_type() != "Min") || node.input_size() != 2 ||
        !IsNumberOfClamp(Metadata(node, kPytorchCall), lower ? 1 : 2)) {
      continue;
    }
    node.set_op_type("Clip");
    if (lower) continue;
    node.add_input(node.input(1));
    node.set_input(1, "");
  }
}

}  // namespace loadline::models::onnx_internal
