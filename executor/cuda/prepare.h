// What a CUDA kernel's prepare function gets.
#ifndef LOADLINE_EXECUTOR_CUDA_PREPARE_H_
#define LOADLINE_EXECUTOR_CUDA_PREPARE_H_

#include "executor/cuda/cuda_kernel.h"
#include "executor/kernel_table.h"
#include "executor/prepare.h"

namespace loadline::executor {

// What kernels of one device share, such as the libraries' handles.
class CudaContext;

namespace cuda {

class Prepare : public executor::Prepare {
 public:
  Prepare(const models::Graph& graph, const models::Node& node,
          CudaContext& context)
      : executor::Prepare(graph, node, "CUDA"), context_(context) {}

  CudaContext& context() const { return context_; }

 private:
  CudaContext& context_;
};

using KernelEntry = KernelEntryOf<Prepare>;

}  // namespace cuda
}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_PREPARE_H_
