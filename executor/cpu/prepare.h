// What a kernel's prepare function gets, and the short way to make a kernel.
//
// Example:
//   absl::StatusOr<std::unique_ptr<Kernel>> PrepareNot(const Prepare& p) {
//     const int64_t n = p.output(0).elements();
//     return MakeKernel([n](const KernelArgs& args) {
//       const bool* x = In<bool>(args, 0);
//       ...
//     });
//   }
#ifndef LOADLINE_EXECUTOR_CPU_PREPARE_H_
#define LOADLINE_EXECUTOR_CPU_PREPARE_H_

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/kernel.h"
#include "models/graph.h"

namespace loadline::executor::cpu {

using models::DType;
using models::Ints;
using models::TensorType;

// A node with the types of its values.
class Prepare {
 public:
  Prepare(const models::Graph& graph, const models::Node& node)
      : graph_(graph), node_(node) {}

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

  // Unimplemented, naming the operator and the type.
  absl::Status Unsupported(DType dtype) const;
  // OK if every input and output given is f32, else Unsupported.
  absl::Status AllF32() const;
  // InvalidArgument naming the node.
  absl::Status Invalid(absl::string_view what) const;

 private:
  const models::Graph& graph_;
  const models::Node& node_;
};

using PreparedKernel = absl::StatusOr<std::unique_ptr<Kernel>>;

struct KernelEntry {
  absl::string_view op;
  PreparedKernel (*prepare)(const Prepare& prepare);
};

// A kernel made of one callable, taking KernelArgs and returning void or
// absl::Status.
template <typename Callable>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Callable run, int64_t workspace_bytes)
      : run_(std::move(run)), workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Run(const KernelArgs& args) override {
    if constexpr (std::is_void_v<
                      std::invoke_result_t<Callable&, const KernelArgs&>>) {
      run_(args);
      return absl::OkStatus();
    } else {
      return run_(args);
    }
  }

 private:
  Callable run_;
  int64_t workspace_bytes_;
};

template <typename Callable>
std::unique_ptr<Kernel> MakeKernel(Callable run, int64_t workspace_bytes = 0) {
  return std::make_unique<FunctionKernel<Callable>>(std::move(run),
                                                    workspace_bytes);
}

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
// A possibly negative axis made positive.
inline int64_t PositiveAxis(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}
// Element strides of a dense row-major tensor.
Ints DenseStrides(absl::Span<const int64_t> dims);

// x seen as [outer, size, inner] around one axis.
struct AxisSplit {
  int64_t outer;
  int64_t size;
  int64_t inner;
};
AxisSplit SplitAt(absl::Span<const int64_t> dims, int64_t axis);

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_PREPARE_H_
