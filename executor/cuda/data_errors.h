// Errors that only data can cause, found by kernels on the device: an index
// out of range. One word in device memory holds the first of a step; the
// device clears it at BeginStep and reads it at Synchronize.
//
// "First" is the lowest launch, then the lowest position within it, whatever
// thread came first, so the same data gives the same error.
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
  int64_t position;  // of the element that is wrong
};
// Of a word that is not kNoDataError.
inline DataError UnpackDataError(DataErrorWord word) {
  return {
      static_cast<int64_t>(word >> kPositionBits),
      static_cast<int64_t>(word & ((DataErrorWord{1} << kPositionBits) - 1))};
}

// What a kernel needs to report (ReportDataError in launch.h): handed to it by
// value.
struct DataErrorSink {
  DataErrorWord* word;
  int64_t launch;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_DATA_ERRORS_H_
