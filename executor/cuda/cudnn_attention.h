// Attention by cuDNN where it has it.
#ifndef LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_
#define LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_

#include "executor/cuda/prepare.h"
#include "executor/ops/attention_layout.h"

namespace loadline::executor::cuda {

// Attention, or AttentionGrad where `backward`. Unimplemented: our own kernels
// are wanted, or cuDNN has none for it. Unavailable: no cuDNN.
PreparedKernel PrepareCudnnAttention(const Prepare& p, const AttentionLayout& a,
                                     bool backward);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_
