// Tested in tests/conformance/pruned_export_test.cc.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/model_file.h"
#include "models/onnx/pruned_rules.h"

namespace loadline::models::onnx_internal {
namespace {

// What the nodes emitted for this one read now in place of `was`; null: that.
const Tensor* Smaller(PrunedFile& file, const onnx::NodeProto& node,
                      const Tensor& was) {
  for (int32_t n : file.Emitted(node)) {
    for (size_t i = 0; i < file.NodeAt(n).inputs.size(); ++i) {
      const ValueId id = file.NodeAt(n).inputs[i];
      if (id == kNoValue) continue;
      const Value& old_value = file.original().graph.value(id);
      const Value& now = file.pruned().value(file.PrunedAt(n).inputs[i]);
      if (old_value.kind == ValueKind::kConstant &&
          old_value.type == was.type && now.type != was.type &&
          *old_value.initial->data == *was.data) {
        return &*now.initial;
      }
    }
  }
  return nullptr;
}

// One that depends on the batch loses the last numbers of an axis. That these
// are the pruned ones, as in zeros or a mask for every head, shows when the
// file is read again.
void ComputedOperand(PrunedFile& file, int i, onnx::NodeProto* node) {
  if (file.varied() == nullptr) return;
  const auto was = file.varied()->here.find(node->input(i));
  if (was == file.varied()->here.end()) return;
  const Tensor* now = Smaller(file, *node, was->second);
  if (now == nullptr || now->type.rank() != was->second.type.rank()) return;
  for (size_t axis = 0; axis < now->type.dims.size(); ++axis) {
    if (now->type.dims[axis] == was->second.type.dims[axis]) continue;
    file.Shorten(i, static_cast<int64_t>(axis), now->type.dims[axis], node);
  }
}

// The nearest tensor made with this one that the graph has. Empty: none.
std::string Combined(PrunedFile& file, const std::string& name) {
  Names seen = {name};
  std::vector<std::string> next = {name};
  for (size_t at = 0; at < next.size(); ++at) {
    if (file.New(next[at]) != nullptr) return next[at];
    for (const onnx::NodeProto& reader : file.graph().node()) {
      if (reader.op_type() == "Shape" ||
          std::count(reader.input().begin(), reader.input().end(), next[at]) ==
              0) {
        continue;
      }
      for (const auto& output : reader.output()) {
        if (seen.insert(output).second) next.push_back(output);
      }
    }
  }
  return "";
}

}  // namespace

// A constant operand that the nodes emitted for this one read smaller. The
// import shares constants of equal contents, so that its name does not tell.
void RewriteConstantOperands(PrunedFile& file, onnx::NodeProto* node) {
  for (int i = 0; i < node->input_size(); ++i) {
    const auto proto = file.ConstantTensor(node->input(i));
    if (!proto.has_value()) {
      ComputedOperand(file, i, node);
      continue;
    }
    int64_t budget_bytes = kMaxConstantBytes;
    const auto tensor = ReadTensor(*proto, "", &budget_bytes);
    if (!tensor.ok()) continue;
    const Tensor* now = Smaller(file, *node, *tensor);
    if (now != nullptr) {
      file.SetInput(i, file.AddConstant(*node, *now), node);
    }
  }
}

// Random numbers in the shape of a constant, such as a mask of dropout at a
// fixed batch. The graph has other nodes there, so the shape is that of what
// the numbers are combined with.
void RewriteRandomLike(PrunedFile& file, onnx::NodeProto* node) {
  const auto proto = file.ConstantTensor(node->input(0));
  if (!proto.has_value()) return;
  int64_t budget_bytes = kMaxConstantBytes;
  const auto tensor = ReadTensor(*proto, "", &budget_bytes);
  const std::string combined = Combined(file, node->output(0));
  if (!tensor.ok() || !file.Changed(combined)) return;
  const Ints& new_dims = file.New(combined)->type.dims;
  const Ints& old_dims = file.Old(combined)->type.dims;
  TensorType type = tensor->type;
  if (type.dims.size() != old_dims.size()) return;
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (type.dims[i] == old_dims[i]) type.dims[i] = new_dims[i];
  }
  // Of Bernoulli the numbers count too: the first for all.
  const auto element = static_cast<size_t>(DTypeBytes(type.dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (int64_t i = 0; i < type.elements(); ++i) {
    bytes->insert(bytes->end(), tensor->data->begin(),
                  tensor->data->begin() + static_cast<long>(element));
  }
  file.SetInput(0, file.AddConstant(*node, {type, std::move(bytes)}), node);
}

void FreezeStale(PrunedFile& file, onnx::NodeProto* node) {
  if (file.varied() == nullptr || file.New(node->output(0)) == nullptr) return;
  for (int i = 0; i < node->input_size(); ++i) {
    if (!file.IsStale(node->input(i))) continue;
    const auto tensor = FixedConstant(*file.varied(), node->input(i));
    if (tensor.has_value())
      file.SetInput(i, file.AddConstant(*node, *tensor), node);
  }
}

}  // namespace loadline::models::onnx_internal
