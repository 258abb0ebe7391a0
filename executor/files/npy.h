// NumPy's array files: the .npy header, and arrays of an .npz archive.
#ifndef LOADLINE_EXECUTOR_FILES_NPY_H_
#define LOADLINE_EXECUTOR_FILES_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/files/convert_elements.h"
#include "models/types.h"

namespace loadline::executor {

struct NpyHeader : FileElement {  // i2 and u2 become i32, u4 becomes i64
  std::vector<int64_t> shape;
  int64_t header_bytes = 0;  // where the data begins
  int64_t data_bytes = 0;    // in the file
};

// Reads the header at the start of `bytes` (format versions 1 to 3), strictly:
// one dictionary with exactly descr, fortran_order and shape. Accepts
// little-endian f2, f4, f8, i2, i4, i8, u2, u4 and i1, u1, b1 in C order.
// InvalidArgument names what was found instead and what to do.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> bytes);

struct NpyArray {
  models::DType dtype = models::DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;  // C order
};

// Data of a file in the header's dtype.
std::vector<std::byte> InDType(const NpyHeader& header,
                               std::vector<std::byte> data);

// Reads the named arrays of an .npz archive, in this order. NotFound: no such
// file, or no such array (lists those that exist). InvalidArgument names the
// file, the array and the fault. Memory use is bounded by the bytes that the
// archive really holds.
absl::StatusOr<std::vector<NpyArray>> ReadNpz(
    const std::string& path, absl::Span<const std::string> names);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_NPY_H_
