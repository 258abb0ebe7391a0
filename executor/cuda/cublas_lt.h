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

// What is done with a product beside storing it, and what that reads or writes.
enum class Epilogue {
  kNone,
  kBias,         // reads one row, which is added to every row of y
  kSumA,         // writes the sums of op(a)'s rows: `rows` numbers
  kSumB,         // writes the sums of op(b)'s columns: `columns` numbers
  kGeluTanhGrad  // reads x of y's shape: y is times the slope of Gelu at x
};

// y = alpha op(a) op(b) + beta c, for `batch` products at once; all
// matrices dense and row-major. a is [rows, inner], or [inner, rows] where
// transposed; b is [inner, columns], or the reverse; c and y are
// [rows, columns].
struct ProductSpec {
  models::DType dtype = models::DType::kF32;  // or kBF16; sums are f32
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;  // 0: there is no c
  Epilogue epilogue = Epilogue::kNone;
  int64_t batch = 1;
  // Elements from one product to the next; 0: the same matrix in all.
  int64_t batch_stride_a = 0;
  int64_t batch_stride_b = 0;
  // Bytes that every operand's address is a multiple of.
  int64_t alignment_bytes = 256;
  // One of Product::algorithms; any other: the first.
  std::string algorithm;
};

class Product {
 public:
  virtual ~Product() = default;
  virtual int64_t workspace_bytes() const = 0;
  // What cuBLASLt's heuristic proposes for these shapes, best guess first.
  virtual std::vector<std::string> algorithms() const = 0;
  // `c` may be y; null where beta is 0. `beside`: what the epilogue reads or
  // writes, of y's type; null where there is none.
  virtual absl::Status Enqueue(const std::byte* a, const std::byte* b,
                               const std::byte* c, const std::byte* beside,
                               std::byte* y, std::byte* workspace,
                               Stream stream) const = 0;
};

// Only algorithms that give the same bits every time; f32 operands are not
// rounded to TF32. Unavailable: no cuBLASLt. Unimplemented: no algorithm.
absl::StatusOr<std::unique_ptr<Product>> MakeProduct(const ProductSpec& spec);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUBLAS_LT_H_
