// Argument of a CUDA kernel's prepare function.
#ifndef LOADLINE_EXECUTOR_CUDA_PREPARE_H_
#define LOADLINE_EXECUTOR_CUDA_PREPARE_H_

#include "executor/cuda/cuda_kernel.h"
#include "executor/ops/kernel_table.h"
#include "executor/ops/prepare.h"

namespace loadline::executor::cuda {

class Prepare : public executor::Prepare {
 public:
  Prepare(const models::Graph& graph, const models::Node& node)
      : executor::Prepare(graph, node, "CUDA") {}
};

using KernelEntry = KernelEntryOf<Prepare>;

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_PREPARE_H_
