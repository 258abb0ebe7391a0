// Attention by cuDNN, where cuDNN supports it.
#ifndef LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_
#define LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_

#include "executor/cuda/prepare.h"
#include "executor/ops/attention_layout.h"

namespace loadline::executor::cuda {

// Attention, or AttentionGrad if `backward`. Unimplemented: our own kernel was
// requested, or cuDNN has none. Unavailable: no cuDNN.
PreparedKernel PrepareCudnnAttention(const Prepare& p, const AttentionLayout& a,
                                     bool backward);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUDNN_ATTENTION_H_
