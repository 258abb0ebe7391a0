// Most models agree with their declarations, so the second inference, without
// them and with the inputs' open axes, runs only after a disagreement. Tested
// in tests/models/onnx_declared_shapes_test.cc.
#include "models/onnx/declared_shapes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/guard.h"
#include "onnx/shape_inference/implementation.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kOpen = -1;

// "[2,?]"
std::string Text(const std::vector<int64_t>& shape) {
  return absl::StrCat(
      "[",
      absl::StrJoin(shape, ",",
                    [](std::string* out, int64_t size) {
                      absl::StrAppend(out,
                                      size == kOpen ? "?" : absl::StrCat(size));
                    }),
      "]");
}

// A shape with open axes only promises nothing that a plan depends on.
bool SaysSizes(const std::vector<int64_t>& shape) {
  return shape.empty() ||
         std::any_of(shape.begin(), shape.end(),
                     [](int64_t size) { return size != kOpen; });
}

bool IsFixed(const std::vector<int64_t>& shape) {
  return std::count(shape.begin(), shape.end(), kOpen) == 0;
}

bool Agree(const std::vector<int64_t>& declared,
           const std::vector<int64_t>& dims) {
  if (declared.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (declared[i] != kOpen && declared[i] != dims[i]) return false;
  }
  return true;
}

}  // namespace

DeclaredShapes::Shape DeclaredShapes::ShapeOf(
    const onnx::ValueInfoProto& info) {
  Shape shape;
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    // Some exporters write a negative size for an open axis.
    const bool fixed = dim.has_dim_value() && dim.dim_value() >= 0;
    shape.push_back(fixed ? dim.dim_value() : kOpen);
  }
  return shape;
}

DeclaredShapes::DeclaredShapes(const onnx::GraphProto& graph) {
  for (const auto* infos : {&graph.value_info(), &graph.output()}) {
    for (const auto& info : *infos) {
      if (!info.type().tensor_type().has_shape()) continue;
      Shape shape = ShapeOf(info);
      if (SaysSizes(shape)) shapes_[info.name()] = std::move(shape);
    }
  }
}

void DeclaredShapes::AddInput(const onnx::ValueInfoProto& input) {
  bool open = !input.type().tensor_type().has_shape();
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    open = open || !dim.has_dim_value();
  }
  if (open) open_inputs_[input.name()] = input;
}

bool DeclaredShapes::InferredShape(const std::string& name,
                                   const onnx::ModelProto& prepared,
                                   Shape* shape) const {
  if (!inferred_) {
    inferred_ = true;
    onnx::ModelProto open = prepared;
    auto* graph = open.mutable_graph();
    graph->clear_value_info();
    for (auto& output : *graph->mutable_output()) {
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
    for (auto& input : *graph->mutable_input()) {
      const auto it = open_inputs_.find(input.name());
      if (it != open_inputs_.end()) input = it->second;
    }
    const absl::Status status = Guard("shape inference", [&] {
      onnx::shape_inference::InferShapes(
          open, onnx::OpSchemaRegistry::Instance(),
          onnx::ShapeInferenceOptions(/*check_type=*/false, /*strict_mode=*/0,
                                      /*data_prop=*/true));
    });
    if (!status.ok()) return false;
    inferred_shapes_ = DeclaredShapes(open.graph()).shapes_;
  }
  const auto it = inferred_shapes_.find(name);
  if (it == inferred_shapes_.end()) return false;
  *shape = it->second;
  return true;
}

absl::Status DeclaredShapes::Check(const std::string& name,
                                   const std::vector<int64_t>& dims,
                                   const onnx::ModelProto& prepared) const {
  const auto it = shapes_.find(name);
  if (it == shapes_.end()) return absl::OkStatus();
  if (Agree(it->second, dims)) return absl::OkStatus();
  Shape inferred;
  const bool known = InferredShape(name, prepared, &inferred);
  // The declaration is out of date if the onnx library contradicts it too. Axes
  // that are open here depend on the sizes that the user gives.
  const bool user_gives_sizes = !open_inputs_.empty();
  const bool agrees =
      known ? Agree(inferred, dims) && (user_gives_sizes || IsFixed(inferred))
            : user_gives_sizes;
  if (agrees) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("makes '", name, "' with the shape ", Text(dims),
                   ", but the file declares the shape ", Text(it->second),
                   "; export the model again, or remove the declared shape"));
}

}  // namespace loadline::models::onnx_internal
