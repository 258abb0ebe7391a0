// Tested in tests/conformance/pruned_export_test.cc.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/node_attributes.h"
#include "models/onnx/open_axes.h"
#include "models/onnx/pruned_rules.h"

namespace loadline::models::onnx_internal {
namespace {

// Of a shape that is joined of single numbers.
bool IsStaleElement(PrunedFile& file, const std::string& shape, size_t i) {
  const onnx::NodeProto* maker = file.Maker(shape);
  if (file.varied() == nullptr || maker == nullptr) return false;
  const onnx::NodeProto& node = *maker;
  if (node.op_type() != "Concat" ||
      node.input_size() !=
          static_cast<int>(file.varied()->here.at(shape).type.elements())) {
    return false;
  }
  return file.IsStale(node.input(static_cast<int>(i)));
}

// The elements of a computed shape, if they can be told.
std::optional<std::vector<ShapeElement>> Elements(PrunedFile& file,
                                                  const std::string& shape) {
  auto elements = ElementsOfShape(file.graph(), file.fixed(), shape);
  if (file.varied() == nullptr) return elements;
  const auto here = file.varied()->here.find(shape);
  const auto there = file.varied()->there.find(shape);
  if (here == file.varied()->here.end() ||
      there == file.varied()->there.end() ||
      here->second.type != there->second.type ||
      here->second.type.dtype != DType::kI64) {
    return elements;
  }
  const auto a = here->second.as<int64_t>(), b = there->second.as<int64_t>();
  if (elements.has_value() && elements->size() != a.size()) return elements;
  const bool told = elements.has_value() && !file.varied()->all_axes;
  if (!elements.has_value()) elements.emplace(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ShapeElement& element = (*elements)[i];
    if (a[i] != b[i]) {
      element = ShapeElement::kOpen;
    } else if (!told) {
      element = a[i] == -1  ? ShapeElement::kInferred
                : a[i] == 0 ? ShapeElement::kCopied
                            : ShapeElement::kFixed;
    }
  }
  return elements;
}

// Axes whose size the file fixes become numbers; the others are read off the
// shape that the file computes, or follow from the other axes.
void ComputedShape(PrunedFile& file, onnx::NodeProto* node,
                   const Ints& old_dims, const Ints& new_dims) {
  const auto elements = Elements(file, node->input(1));
  if (elements.has_value() && elements->size() != new_dims.size()) return;
  Ints sizes = new_dims;
  std::vector<bool> open(new_dims.size(), false);
  for (size_t i = 0; i < open.size(); ++i) {
    const ShapeElement element =
        elements.has_value() ? (*elements)[i] : ShapeElement::kOpen;
    open[i] = element != ShapeElement::kFixed && old_dims[i] == new_dims[i];
    if (element != ShapeElement::kFixed && !open[i]) sizes[i] = -1;
  }
  int64_t inferred = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    inferred += open[i] ? elements.has_value() &&
                              (*elements)[i] == ShapeElement::kInferred
                        : sizes[i] == -1;
  }
  if (node->op_type() == "Expand" || inferred > 1) sizes = new_dims;
  // What depends on the batch and on what has changed is inferred, if it is
  // the only such size.
  if (inferred == 0 && node->op_type() == "Reshape") {
    int stale = -1, count = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      if (!open[i] || !IsStaleElement(file, node->input(1), i)) continue;
      stale = static_cast<int>(i);
      ++count;
    }
    if (count == 1) {
      open[static_cast<size_t>(stale)] = false;
      sizes[static_cast<size_t>(stale)] = -1;
    }
  }
  const std::string computed = node->input(1);
  std::vector<std::string> parts;
  for (size_t i = 0; i < open.size();) {
    size_t end = i + 1;
    while (end < open.size() && open[end] == open[i]) ++end;
    const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(end);
    if (open[i]) {
      onnx::NodeProto slice;
      slice.set_op_type("Slice");
      slice.add_output(file.NewName(*node, "open"));
      slice.set_name(slice.output(0));
      slice.add_input(computed);
      slice.add_input(file.AddInitializer(slice, "starts", Int64Tensor({a})));
      slice.add_input(file.AddInitializer(slice, "ends", Int64Tensor({b})));
      parts.push_back(slice.output(0));
      file.AddNode(std::move(slice));
    } else {
      parts.push_back(file.AddInitializer(
          *node, "sizes",
          Int64Tensor(Ints(sizes.begin() + a, sizes.begin() + b))));
    }
    i = end;
  }
  if (parts.size() == 1) {
    file.SetInput(1, parts[0], node);
    return;
  }
  onnx::NodeProto join;
  join.set_op_type("Concat");
  join.add_output(file.NewName(*node, "shape"));
  join.set_name(join.output(0));
  for (const std::string& part : parts) join.add_input(part);
  SetInt("axis", 0, &join);
  file.SetInput(1, join.output(0), node);
  file.AddNode(std::move(join));
}

}  // namespace

// The shape as the file has it, with the sizes of shortened axes replaced.
void RewriteShape(PrunedFile& file, onnx::NodeProto* node) {
  const std::string& y = node->output(0);
  if (node->input_size() < 2 ||
      !(file.Changed(y) || file.Changed(node->input(0)) ||
        (file.varied() != nullptr && file.Old(y) != nullptr &&
         file.IsStale(node->input(1))))) {
    return;
  }
  const Ints& old_dims = file.Old(y)->type.dims;
  const Ints& new_dims = file.New(y)->type.dims;
  const std::optional<Ints> given = file.ConstantInts(*node, 1);
  if (!given.has_value()) {
    ComputedShape(file, node, old_dims, new_dims);
    return;
  }
  const std::optional<Ints> from = file.NewDims(node->input(0));
  Ints shape = *given;
  if (shape.size() > new_dims.size()) return;
  // Expand aligns the last axes.
  const size_t first = new_dims.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool copies = node->op_type() == "Reshape" && shape[i] == 0 &&
                        IntAttribute(*node, "allowzero", 0) == 0;
    if (copies) {
      if (!from.has_value() || (*from)[i] != new_dims[i]) {
        shape[i] = new_dims[i];
      }
    } else if (shape[i] == old_dims[first + i]) {
      shape[i] = new_dims[first + i];
    }
  }
  if (shape != *given) file.SetInputInts(1, "shape", shape, node);
}

}  // namespace loadline::models::onnx_internal
