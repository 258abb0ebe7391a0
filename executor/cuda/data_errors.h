// Errors that only data can cause, such as an index out of range, detected by
// kernels on the device. One word in device memory holds the first error of a
// step; the device clears it at BeginStep and reads it at Synchronize.
//
// "First" means the lowest launch, then the lowest position in it, whatever the
// order of threads, so the same data gives the same error.
#ifndef LOADLINE_EXECUTOR_CUDA_DATA_ERRORS_H_
#define LOADLINE_EXECUTOR_CUDA_DATA_ERRORS_H_

#include <cstdint>

namespace loadline::executor::cuda {

// The word: kNoDataError, or launch * 2^40 + position.
using DataErrorWord = unsigned long long;
inline constexpr DataErrorWord kNoDataError = ~DataErrorWord{0};
inline constexpr int kPositionBits = 40;

struct DataError {
  int64_t launch;    // LaunchContext::launch
  int64_t position;  // of the wrong element
};
// Requires a word other than kNoDataError.
inline DataError UnpackDataError(DataErrorWord word) {
  return {
      static_cast<int64_t>(word >> kPositionBits),
      static_cast<int64_t>(word & ((DataErrorWord{1} << kPositionBits) - 1))};
}

// Passed to kernels by value, for ReportDataError in launch.h.
struct DataErrorSink {
  DataErrorWord* word;
  int64_t launch;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_DATA_ERRORS_H_
