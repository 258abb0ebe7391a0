// The real driver: the CUDA runtime, linked statically, so that a program that
// has it starts on a machine without CUDA too.
#ifndef LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_
#define LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_

#include <memory>

#include "executor/cuda/driver.h"

namespace loadline::executor::cuda {

// The process's only one; it has no state. Calls fail with Unavailable where
// there is no GPU.
Driver& RuntimeDriver();

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_
