// NumPy's array files: the .npy header, and arrays out of an .npz archive.
#ifndef LOADLINE_EXECUTOR_FILES_NPY_H_
#define LOADLINE_EXECUTOR_FILES_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/types.h"

namespace loadline::executor {

struct NpyHeader {
  models::DType dtype = models::DType::kF32;
  std::vector<int64_t> shape;
  int64_t header_bytes = 0;  // where the data begins
  int64_t data_bytes = 0;    // what the shape and dtype come to
};

// Reads the header at the start of `bytes` (format versions 1 to 3), strictly:
// one dictionary with exactly descr, fortran_order and shape. Little-endian
// f2, f4, f8, i4, i8 and i1, u1, b1; C order. InvalidArgument says what was
// found instead, and what to do.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> bytes);

struct NpyArray {
  models::DType dtype = models::DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;  // C order
};

// The arrays of an .npz archive with these names, in this order. NotFound: no
// file, or no such array (lists those there are). InvalidArgument names the
// file, the array and what is wrong. Memory grows only with bytes that the
// archive really holds.
absl::StatusOr<std::vector<NpyArray>> ReadNpz(
    const std::string& path, absl::Span<const std::string> names);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_NPY_H_
