// The runtime's opaque stream, without the runtime's headers.
#ifndef LOADLINE_EXECUTOR_CUDA_STREAM_H_
#define LOADLINE_EXECUTOR_CUDA_STREAM_H_

struct CUstream_st;

namespace loadline::executor::cuda {

using Stream = CUstream_st*;

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_STREAM_H_
