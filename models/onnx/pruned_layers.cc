// Tested in tests/conformance/pruned_export_test.cc.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/node_attributes.h"
#include "models/onnx/pruned_rules.h"

namespace loadline::models::onnx_internal {

void RewriteConvolution(PrunedFile& file, onnx::NodeProto* node) {
  RewriteConstantOperands(file, node);
  if (IntAttribute(*node, "group", 1) == 1) return;
  const std::string& wide =
      node->op_type() == "Conv" ? node->input(0) : node->output(0);
  const std::optional<Ints> channels = file.NewDims(wide);
  const std::optional<Ints> weight = file.NewDims(node->input(1));
  if (!channels.has_value() || !weight.has_value()) return;
  SetInt("group", (*channels)[1] / (*weight)[1], node);
}

// Whole groups go where there are several.
void RewriteGroupNormalization(PrunedFile& file, onnx::NodeProto* node) {
  const std::string& x = node->input(0);
  const int64_t groups = IntAttribute(*node, "num_groups", 1);
  if (!file.Changed(x) || groups <= 1) return;
  const int64_t in_group = file.Old(x)->type.dims[1] / groups;
  if (file.New(x)->type.dims[1] % in_group != 0) return;
  SetInt("num_groups", file.New(x)->type.dims[1] / in_group, node);
}

// R is [directions, gates * hidden, hidden].
void RewriteRecurrent(PrunedFile& file, onnx::NodeProto* node) {
  const std::vector<std::string> given(node->input().begin(),
                                       node->input().end());
  RewriteConstantOperands(file, node);
  // A first state that the file computes, from its batch for instance.
  const std::optional<Ints> r = file.NewDims(node->input(2));
  if (!r.has_value() || r->size() != 3) return;
  for (int i = 5; i <= 6 && i < node->input_size(); ++i) {
    const std::string& name = node->input(i);
    const Value* first = file.Old(name);
    const bool computed =
        !name.empty() && name == given[static_cast<size_t>(i)] &&
        !file.IsInitializer(name) &&
        (first == nullptr || first->kind == ValueKind::kConstant);
    if (computed &&
        (first == nullptr || first->type.dims.back() != r->back())) {
      file.Shorten(i, -1, r->back(), node);
    }
  }
  SetInt("hidden_size", r->back(), node);
}

void RewriteAttention(PrunedFile& file, onnx::NodeProto* node) {
  for (const auto& [i, name] :
       {std::pair(0, "q_num_heads"), std::pair(1, "kv_num_heads")}) {
    const int64_t heads = IntAttribute(*node, name, 0);
    if (i >= node->input_size() || heads == 0 ||
        !file.Changed(node->input(i))) {
      continue;
    }
    const int64_t width = file.Old(node->input(i))->type.dims.back();
    SetInt(name, file.New(node->input(i))->type.dims.back() / (width / heads),
           node);
  }
}

}  // namespace loadline::models::onnx_internal
