// Conversions between the element types of NumPy's files and of tensors.
#ifndef LOADLINE_EXECUTOR_FILES_CONVERT_ELEMENTS_H_
#define LOADLINE_EXECUTOR_FILES_CONVERT_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "models/types.h"

namespace loadline::executor {

// Elements as a file has them.
struct FileElement {
  models::DType dtype = models::DType::kF32;  // after widening
  int64_t narrow_bytes = 0;  // of an integer in fewer bytes; 0: as `dtype`
  bool narrow_signed = false;

  int64_t bytes() const;
};

// Writes `count` elements at `to`. False: a number does not fit.
using ElementConversion = bool (*)(const std::byte* from, size_t count,
                                   std::byte* to);

// Null: there is none. Every number keeps its value, except that f64 is
// rounded to f32. The same type is copied.
ElementConversion FindConversion(const FileElement& from, models::DType to);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_CONVERT_ELEMENTS_H_
