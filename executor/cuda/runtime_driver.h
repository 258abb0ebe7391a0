// The real driver: the CUDA runtime, linked statically, so that the program
// also starts on a machine without CUDA.
#ifndef LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_
#define LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_

#include <memory>

#include "executor/cuda/driver.h"

namespace loadline::executor::cuda {

// The process's only driver; it is stateless. Calls return Unavailable without
// a GPU.
Driver& RuntimeDriver();

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_RUNTIME_DRIVER_H_
