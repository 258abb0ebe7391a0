// oneDNN as a Kernel: a short program of primitives over tensors in the node's
// inputs, its outputs, or the workspace.
//
// Primitives, memory objects and argument lists are created at prepare time; a
// run only sets the addresses. Tensors, reordered copies and scratchpads are in
// the workspace. dnnl_primitive_execute itself allocates blocks from the heap
// and frees them before it returns: a few KiB if the processor has instructions
// for the product's type (AVX-512 for f32, AVX-512 BF16 for bf16), otherwise up
// to 0.8 MiB per thread for packed blocks of the operands. The blocks do not
// grow with the tensors; tests/conformance limits them to 1 MiB per thread.
#ifndef LOADLINE_EXECUTOR_CPU_ONEDNN_H_
#define LOADLINE_EXECUTOR_CPU_ONEDNN_H_

#include <functional>
#include <utility>
#include <vector>

#include "dnnl.hpp"
#include "executor/cpu/prepare.h"

namespace loadline::executor::cpu {

const dnnl::engine& CpuEngine();

// Attributes for a scratchpad that the caller provides.
dnnl::primitive_attr UserScratchpad();

// The element type, f32 or bf16.
dnnl::memory::data_type OneDnnType(DType dtype);
// The type in which products of such elements are computed: f32 if this
// processor cannot multiply bf16; operands and results then pass through the
// workspace.
DType ProductType(DType dtype);
// A dense row-major tensor of these dimensions.
dnnl::memory::desc PlainDesc(const Ints& dims, DType dtype);
// The same dimensions in the format that a product prefers.
dnnl::memory::desc AnyDesc(const Ints& dims, DType dtype);

class OneDnnProgram final : public Kernel {
 public:
  // A tensor of the program, by position.
  using Slot = int;

  OneDnnProgram();

  // `desc` describes the bytes of the node's input or output `index` from
  // `first_byte` on.
  Slot AddInput(int index, const dnnl::memory::desc& desc,
                int64_t first_byte = 0);
  Slot AddOutput(int index, const dnnl::memory::desc& desc,
                 int64_t first_byte = 0);
  Slot AddTemporary(const dnnl::memory::desc& desc);

  // Temporaries up to here; with ReuseTemporaries, those that are added later
  // lie where others lay. Their contents are then undefined.
  int64_t temporary_mark() const { return next_temporary_; }
  void ReuseTemporaries(int64_t mark) { next_temporary_ = mark; }

  // `from` itself, or a copy in format `desc` made by an added step.
  Slot Reordered(Slot from, const dnnl::memory::desc& desc);
  // A slot where a primitive may write `to` in format `desc`. Call StoreResult
  // with both after adding the primitive.
  Slot ResultSlot(Slot to, const dnnl::memory::desc& desc);
  void StoreResult(Slot result, Slot to);

  // Adds a primitive. `scratchpad` is its descriptor's scratchpad_desc().
  void AddStep(const dnnl::primitive& primitive,
               const std::vector<std::pair<int, Slot>>& arguments,
               const dnnl::memory::desc& scratchpad);

  // Adds `addend` to `sum`, element by element; both have one format.
  void AddTo(Slot sum, Slot addend);

  // Code to run after the last step.
  void SetEpilogue(std::function<void(const KernelArgs&)> epilogue) {
    epilogue_ = std::move(epilogue);
  }

  int64_t workspace_bytes() const override;
  absl::Status Run(const KernelArgs& args) override;

 private:
  enum class Place { kInput, kOutput, kTemporary };
  struct Tensor {
    Place place;
    int64_t operand;     // index of the input or output; 0 for a temporary
    int64_t first_byte;  // in the operand or the workspace
    dnnl::memory memory;
  };
  struct Step {
    dnnl::primitive primitive;
    dnnl::memory scratchpad;  // empty: none
    std::vector<dnnl_exec_arg_t> arguments;
  };

  Slot Add(Place place, int64_t operand, int64_t first_byte,
           const dnnl::memory::desc& desc);
  void* Address(const Tensor& tensor, const KernelArgs& args) const;

  dnnl::stream stream_;
  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  int64_t next_temporary_ = 0;
  int64_t temporary_bytes_ = 0;  // the most that are in use
  // One scratchpad after the temporaries, as large as the largest step needs.
  int64_t scratchpad_bytes_ = 0;
  std::function<void(const KernelArgs&)> epilogue_;
};

// Calls `make`, which fills the program and may throw dnnl::error. The
// exception becomes Unimplemented (no such primitive) or InvalidArgument,
// naming the node.
PreparedKernel MakeOneDnnKernel(
    const Prepare& p, const std::function<void(OneDnnProgram&)>& make);

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_ONEDNN_H_
