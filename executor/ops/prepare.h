// Argument of every prepare function: a node with the types of its values. Also
// shape arithmetic that kernels share.
//
// Example:
//   PreparedKernel PrepareNot(const Prepare& p) {
//     const int64_t n = p.output(0).elements();
//     ...
//   }
#ifndef LOADLINE_EXECUTOR_OPS_PREPARE_H_
#define LOADLINE_EXECUTOR_OPS_PREPARE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/device/kernel.h"
#include "models/graph.h"

namespace loadline::executor {

using models::DType;
using models::Ints;
using models::TensorType;

using PreparedKernel = absl::StatusOr<std::unique_ptr<Kernel>>;

// A node with the types of its values, and the device's name for error
// messages.
class Prepare {
 public:
  Prepare(const models::Graph& graph, const models::Node& node,
          absl::string_view device)
      : graph_(graph), node_(node), device_(device) {}

  const models::Node& node() const { return node_; }
  const models::Attributes& attributes() const { return node_.attributes; }
  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const {
    return i < inputs() && node_.inputs[i] != models::kNoValue;
  }
  const TensorType& input(int i) const {
    return graph_.value(node_.inputs[i]).type;
  }
  const TensorType& output(int i) const {
    return graph_.value(node_.outputs[i]).type;
  }

  // Unimplemented: the device has no kernel for this operator.
  absl::Status NoKernel() const;
  // Unimplemented, naming the operator and the type.
  absl::Status Unsupported(DType dtype) const;
  // OK if every present input and output is f32, otherwise Unsupported.
  absl::Status AllF32() const;
  // InvalidArgument naming the node.
  absl::Status Invalid(absl::string_view what) const;

 private:
  const models::Graph& graph_;
  const models::Node& node_;
  absl::string_view device_;
};

template <typename T = float>
const T* In(const KernelArgs& args, int i) {
  return reinterpret_cast<const T*>(args.inputs[i]);
}
template <typename T = float>
T* Out(const KernelArgs& args, int i) {
  return reinterpret_cast<T*>(args.outputs[i]);
}
template <typename T = float>
T* Workspace(const KernelArgs& args) {
  return reinterpret_cast<T*>(args.workspace);
}

// Product of dims[begin, end).
int64_t Elements(absl::Span<const int64_t> dims, int64_t begin, int64_t end);
// Maps a possibly negative axis to [0, rank).
inline int64_t PositiveAxis(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}
// Element strides of a dense row-major tensor.
Ints DenseStrides(absl::Span<const int64_t> dims);

// x viewed as [outer, size, inner] around one axis.
struct AxisSplit {
  int64_t outer;
  int64_t size;
  int64_t inner;
};
AxisSplit SplitAt(absl::Span<const int64_t> dims, int64_t axis);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_PREPARE_H_
