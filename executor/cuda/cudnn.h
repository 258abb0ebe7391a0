// Convolutions with their gradients, and attention, by cuDNN. Only cudnn.cc
// includes cudnn-frontend, whose headers take a minute and a half to compile.
#ifndef LOADLINE_EXECUTOR_CUDA_CUDNN_H_
#define LOADLINE_EXECUTOR_CUDA_CUDNN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/cuda/driver.h"
#include "models/attributes.h"
#include "models/types.h"

namespace loadline::executor::cuda {

enum class ConvKind { kForward, kInputGrad, kWeightGrad };

// Tensors in the operator's order (operators.md): x, w, y; dy, w, dx; dy, x,
// dw.
struct ConvSpec {
  ConvKind kind = ConvKind::kForward;
  models::DType dtype = models::DType::kF32;  // or kBF16; sums are f32
  // Dense NCHW and OIHW, where I counts the channels of one group. With
  // channels last: the same order of dimensions, stored as dense NHWC and OHWI.
  models::Ints x, w, y;
  bool channels_last = false;
  models::Ints strides, dilations, pads;  // two each; pads on either side
  // One of CudnnAlgorithms; otherwise the first is used.
  std::string algorithm;
};

// Tensors: q, k, v, y, lse; backward: dy, q, k, v, y, lse, dq, dk, dv. bf16;
// lse f32. Inputs and outputs must not overlap.
struct AttentionSpec {
  bool backward = false;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t rows = 0;         // q is [batch, rows, heads, width]
  int64_t columns = 0;      // k is [batch, columns, heads, width]
  int64_t width = 0;        // lse is [batch, heads, rows]
  int64_t value_width = 0;  // of v and y
  float scale = 1;
  bool causal = false;
  std::string algorithm;  // as ConvSpec's
};

class CudnnOperation {
 public:
  virtual ~CudnnOperation() = default;
  virtual int64_t workspace_bytes() const = 0;
  // `tensors` in the order of the spec.
  virtual absl::Status Enqueue(absl::Span<const std::byte* const> tensors,
                               std::byte* workspace, Stream stream) const = 0;
};

// Uses only deterministic engines, and none that rounds f32 operands.
// Unavailable: no cuDNN. Unimplemented: no such engine.
absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(const ConvSpec& spec);
absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(
    const AttentionSpec& spec);

// The engines that MakeCudnn may use, cuDNN's best guess first, at most a few:
// each is built to see whether it works. Empty: none, or an error.
std::vector<std::string> CudnnAlgorithms(const ConvSpec& spec);
std::vector<std::string> CudnnAlgorithms(const AttentionSpec& spec);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUDNN_H_
