// Matrix products by cuBLASLt.
#ifndef LOADLINE_EXECUTOR_CUDA_CUBLAS_LT_H_
#define LOADLINE_EXECUTOR_CUDA_CUBLAS_LT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/driver.h"
#include "models/types.h"

namespace loadline::executor::cuda {

// Work done together with a product, and the extra tensor that it reads or
// writes.
enum class Epilogue {
  kNone,
  kBias,         // reads one row, which is added to every row of y
  kSumA,         // writes the sums of op(a)'s rows: `rows` numbers
  kSumB,         // writes the sums of op(b)'s columns: `columns` numbers
  kGeluTanhGrad  // reads x of y's shape: y is times the slope of Gelu at x
};

// y = alpha op(a) op(b) + beta c, for `batch` products at once; all matrices
// dense and row-major. a is [rows, inner], or [inner, rows] if transposed; b is
// [inner, columns], or [columns, inner] if transposed; c and y are [rows,
// columns].
struct ProductSpec {
  models::DType dtype = models::DType::kF32;   // or kBF16; sums are f32
  models::DType result = models::DType::kF32;  // of c and y: dtype, or kF32
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;  // 0: no c
  Epilogue epilogue = Epilogue::kNone;
  int64_t batch = 1;
  // Elements between consecutive products; 0: the same matrix in all.
  int64_t batch_stride_a = 0;
  int64_t batch_stride_b = 0;
  // Common alignment of all operands' addresses.
  int64_t alignment_bytes = 256;
  // One of Product::algorithms; otherwise the first is used.
  std::string algorithm;
};

class Product {
 public:
  virtual ~Product() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Proposals of cuBLASLt's heuristic for these shapes, best first.
  virtual std::vector<std::string> algorithms() const = 0;
  // `c` may equal y; null if beta is 0. `auxiliary`: the tensor that the
  // epilogue reads or writes, of y's type; null without an epilogue.
  virtual absl::Status Enqueue(const std::byte* a, const std::byte* b,
                               const std::byte* c, const std::byte* auxiliary,
                               std::byte* y, std::byte* workspace,
                               Stream stream) const = 0;
};

// Uses only deterministic algorithms; f32 operands are not rounded to TF32.
// Unavailable: no cuBLASLt. Unimplemented: no algorithm.
absl::StatusOr<std::unique_ptr<Product>> MakeProduct(const ProductSpec& spec);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUBLAS_LT_H_
