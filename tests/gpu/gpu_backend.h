// Runs the conformance tests' kernels on a real GPU: operands are copied into
// one block of device memory, each between canaries, and back.
#ifndef LOADLINE_TESTS_GPU_GPU_BACKEND_H_
#define LOADLINE_TESTS_GPU_GPU_BACKEND_H_

#include "tests/conformance/harness.h"

namespace loadline::conformance {

// Kernels return Internal if one wrote outside its operands.
extern const Backend kGpu;

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_GPU_GPU_BACKEND_H_
