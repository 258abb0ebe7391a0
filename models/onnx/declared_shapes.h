// The shapes that a file declares for values that nodes make. They may disagree
// with the computed ones if an exporter, or this importer, computes a size
// wrongly.
#ifndef LOADLINE_MODELS_ONNX_DECLARED_SHAPES_H_
#define LOADLINE_MODELS_ONNX_DECLARED_SHAPES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

class DeclaredShapes {
 public:
  DeclaredShapes() = default;
  // Shapes of the graph's intermediate values and outputs, as in the file.
  explicit DeclaredShapes(const onnx::GraphProto& graph);

  // An input as the file declares it. The user gives the sizes of open axes.
  void AddInput(const onnx::ValueInfoProto& input);

  // InvalidArgument if the value's shape differs from the declared one and the
  // onnx library does not compute it so either. Axes without a declared size
  // are not compared. If inputs have open axes, nor are those whose size may
  // depend on them: exporters write there the sizes of their example.
  // `prepared`: the graph whose nodes make the values.
  absl::Status Check(const std::string& name, const std::vector<int64_t>& dims,
                     const onnx::ModelProto& prepared) const;

 private:
  // Sizes, kOpen for an axis without one.
  using Shape = std::vector<int64_t>;

  static Shape ShapeOf(const onnx::ValueInfoProto& info);
  // The value's shape by the onnx library, without declarations and with the
  // inputs' open axes left open. False: unknown.
  bool InferredShape(const std::string& name, const onnx::ModelProto& prepared,
                     Shape* shape) const;

  std::map<std::string, Shape> shapes_;
  std::map<std::string, onnx::ValueInfoProto> open_inputs_;
  // Filled at the first disagreement.
  mutable bool inferred_ = false;
  mutable std::map<std::string, Shape> inferred_shapes_;
};

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_DECLARED_SHAPES_H_
