// Runs operator cases on the emulated GPU.
#ifndef LOADLINE_TESTS_CONFORMANCE_CUDA_EMULATED_H_
#define LOADLINE_TESTS_CONFORMANCE_CUDA_EMULATED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tests/conformance/harness.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {

inline const Backend kEmulated = {cuda_emulator::PrepareKernel,
                                  cuda_emulator::RunKernel};

// RunCase on the emulator. `order`: seed of the order of threads; 0: by number.
inline absl::StatusOr<RunResult> RunEmulated(const CaseGraph& c,
                                             RunOptions options,
                                             uint64_t order) {
  options.backend = &kEmulated;
  cuda_emulator::SetOrder(order);
  auto result = RunCase(c, options);
  cuda_emulator::SetOrder(0);
  return result;
}

}  // namespace loadline::conformance

#endif  // LOADLINE_TESTS_CONFORMANCE_CUDA_EMULATED_H_
