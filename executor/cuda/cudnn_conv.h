// A convolution or one of its gradients by cuDNN. The only door to
// cudnn-frontend, whose headers take a minute and a half to compile.
#ifndef LOADLINE_EXECUTOR_CUDA_CUDNN_CONV_H_
#define LOADLINE_EXECUTOR_CUDA_CUDNN_CONV_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/driver.h"
#include "models/attributes.h"
#include "models/types.h"

namespace loadline::executor::cuda {

enum class ConvKind { kForward, kInputGrad, kWeightGrad };

struct ConvSpec {
  ConvKind kind = ConvKind::kForward;
  models::DType dtype = models::DType::kF32;  // or kBF16; sums are f32
  // Dense NCHW and OIHW, I being the channels of one group.
  models::Ints x, w, y;
  models::Ints strides, dilations, pads_begin, pads_end;  // two each
};

class CudnnConv {
 public:
  virtual ~CudnnConv() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Operands in the operator's order (operators.md): x, w -> y; dy, w -> dx;
  // dy, x -> dw.
  virtual absl::Status Enqueue(const std::byte* a, const std::byte* b,
                               std::byte* out, std::byte* workspace,
                               Stream stream) const = 0;
};

// Only engines that give the same bits every time, and none that rounds f32
// operands. Unavailable: no cuDNN. Unimplemented: no such engine.
absl::StatusOr<std::unique_ptr<CudnnConv>> MakeCudnnConv(const ConvSpec& spec);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUDNN_CONV_H_
