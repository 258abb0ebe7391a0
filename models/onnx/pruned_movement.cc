// Tested in tests/conformance/pruned_export_test.cc.
#include <cstdint>
#include <optional>

#include "models/onnx/node_attributes.h"
#include "models/onnx/pruned_rules.h"

namespace loadline::models::onnx_internal {
namespace {

std::optional<Ints> GivenPads(const PrunedFile& file,
                              const onnx::NodeProto& node) {
  if (FindAttribute(node, "pads") != nullptr) {
    return IntsAttribute(node, "pads");
  }
  return file.ConstantInts(node, 1);
}

}  // namespace

void RewriteSlice(PrunedFile& file, onnx::NodeProto* node) {
  const int32_t n = file.Made(*node, "Slice");
  if (n < 0 || file.NodeAt(n).attributes == file.PrunedAt(n).attributes) return;
  const Attributes& now = file.PrunedAt(n).attributes;
  const char* const names[] = {"starts", "ends", "axes", "steps"};
  for (int i = 0; i < 4; ++i) {
    if (node->input_size() < 2) {
      if (i < 3) SetInts(names[i], now.IntList(names[i]), node);
    } else {
      file.SetInputInts(i + 1, names[i], now.IntList(names[i]), node);
    }
  }
}

void RewriteSplit(PrunedFile& file, onnx::NodeProto* node) {
  const int32_t n = file.Made(*node, "Split");
  if (n < 0 || file.NodeAt(n).attributes == file.PrunedAt(n).attributes) return;
  const Ints sizes = file.PrunedAt(n).attributes.IntList("sizes");
  if (FindAttribute(*node, "split") != nullptr || file.Opset() < 13) {
    SetInts("split", sizes, node);
    return;
  }
  EraseAttribute("num_outputs", node);
  file.SetInputInts(1, "split", sizes, node);
}

// A single number is the size of every part, which may differ now.
void RewriteSplitToSequence(PrunedFile& file, onnx::NodeProto* node) {
  const int32_t n = file.Made(*node, "Split");
  if (n < 0 || file.NodeAt(n).attributes == file.PrunedAt(n).attributes) return;
  file.SetInputInts(1, "split", file.PrunedAt(n).attributes.IntList("sizes"),
                    node);
}

// Padding with zeros is the operator SliceGrad, whose attribute starts has the
// elements that are padded before each axis. Other padding is rewritten only if
// it is at the end of an axis.
void RewritePad(PrunedFile& file, onnx::NodeProto* node) {
  const Value* x = file.New(node->input(0));
  const Value* y = file.New(node->output(0));
  if (x == nullptr || y == nullptr ||
      !(file.Changed(node->output(0)) || file.Changed(node->input(0)))) {
    return;
  }
  const size_t rank = x->type.dims.size();
  Ints pads(2 * rank, 0);
  const int32_t n = file.Made(*node, "SliceGrad");
  if (n >= 0) {
    const Ints axes = file.PrunedAt(n).attributes.IntList("axes");
    const Ints starts = file.PrunedAt(n).attributes.IntList("starts");
    for (size_t i = 0; i < axes.size(); ++i) {
      pads[static_cast<size_t>(axes[i])] = starts[i];
    }
  } else {
    const std::optional<Ints> given = GivenPads(file, *node);
    if (!given.has_value() || given->size() != 2 * rank) return;
    pads = *given;
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    pads[rank + axis] = y->type.dims[axis] - x->type.dims[axis] - pads[axis];
  }
  if (FindAttribute(*node, "pads") != nullptr) {
    SetInts("pads", pads, node);
    return;
  }
  file.SetInputInts(1, "pads", pads, node);
  if (node->input_size() > 3) node->set_input(3, "");  // axes: all of them
}
void RewriteResize(PrunedFile& file, onnx::NodeProto* node) {
  std::optional<Ints> sizes = file.ConstantInts(*node, 3);
  if (!sizes.has_value() || !file.Changed(node->output(0))) return;
  Ints axes = IntsAttribute(*node, "axes");
  if (axes.empty()) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  const Ints& old_dims = file.Old(node->output(0))->type.dims;
  const Ints& new_dims = file.New(node->output(0))->type.dims;
  for (size_t i = 0; i < sizes->size() && i < axes.size(); ++i) {
    const int64_t axis =
        axes[i] < 0 ? axes[i] + static_cast<int64_t>(old_dims.size()) : axes[i];
    const auto a = static_cast<size_t>(axis);
    if (a < old_dims.size() && (*sizes)[i] == old_dims[a]) {
      (*sizes)[i] = new_dims[a];
    }
  }
  file.SetInputInts(3, "sizes", *sizes, node);
}

}  // namespace loadline::models::onnx_internal
