// In cuBLASLt's and cuDNN's place: the products and convolutions that they are
// asked for, as plain loops over the very description that they get. So what
// stands above them, batches, biases, transpositions, geometry, is tested
// without a GPU; the libraries themselves are not.
#include <cstring>

#include "executor/cuda/cublas_lt.h"
#include "executor/cuda/cudnn_conv.h"
#include "tests/cuda_emulator/cuda_bf16.h"

namespace loadline::executor::cuda {
namespace {

float Load(const std::byte* base, int64_t i, models::DType dtype) {
  if (dtype == models::DType::kF32) {
    return reinterpret_cast<const float*>(base)[i];
  }
  return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(base)[i]);
}

void Store(std::byte* base, int64_t i, float value, models::DType dtype) {
  if (dtype == models::DType::kF32) {
    reinterpret_cast<float*>(base)[i] = value;
  } else {
    reinterpret_cast<__nv_bfloat16*>(base)[i] = __float2bfloat16(value);
  }
}

// A workspace that must be there, as the libraries' must.
constexpr int64_t kWorkspaceBytes = 512;

class PlainProduct final : public Product {
 public:
  explicit PlainProduct(const ProductSpec& spec) : s_(spec) {}

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }

  absl::Status Enqueue(const std::byte* a, const std::byte* b,
                       const std::byte* c, const std::byte* bias, std::byte* y,
                       std::byte* workspace, Stream) const override {
    std::memset(workspace, 0xFF, kWorkspaceBytes);
    const int64_t a_row = s_.transpose_a ? 1 : s_.inner;
    const int64_t a_inner = s_.transpose_a ? s_.rows : 1;
    const int64_t b_inner = s_.transpose_b ? 1 : s_.columns;
    const int64_t b_column = s_.transpose_b ? s_.inner : 1;
    for (int64_t n = 0; n < s_.batch; ++n) {
      for (int64_t i = 0; i < s_.rows; ++i) {
        for (int64_t j = 0; j < s_.columns; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < s_.inner; ++k) {
            const int64_t at_a =
                n * s_.batch_stride_a + i * a_row + k * a_inner;
            const int64_t at_b =
                n * s_.batch_stride_b + k * b_inner + j * b_column;
            sum += static_cast<double>(Load(a, at_a, s_.dtype)) *
                   Load(b, at_b, s_.dtype);
          }
          const int64_t at = (n * s_.rows + i) * s_.columns + j;
          double value = s_.alpha * sum;
          if (s_.beta != 0) value += s_.beta * Load(c, at, s_.dtype);
          if (s_.bias) value += Load(bias, j, s_.dtype);
          Store(y, at, static_cast<float>(value), s_.dtype);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  ProductSpec s_;
};

class PlainConv final : public CudnnConv {
 public:
  explicit PlainConv(const ConvSpec& spec) : s_(spec) {}

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }

  // Every product of an x and a w that there is goes to the y it belongs to, or
  // to whichever of the three is asked for.
  absl::Status Enqueue(const std::byte* a, const std::byte* b, std::byte* out,
                       std::byte* workspace, Stream) const override {
    std::memset(workspace, 0xFF, kWorkspaceBytes);
    const models::Ints& out_dims = s_.kind == ConvKind::kForward     ? s_.y
                                   : s_.kind == ConvKind::kInputGrad ? s_.x
                                                                     : s_.w;
    std::vector<double> sums(out_dims[0] * out_dims[1] * out_dims[2] *
                             out_dims[3]);
    ForEachTap([&](int64_t x, int64_t w, int64_t y) {
      if (s_.kind == ConvKind::kForward) {
        sums[y] += Product(a, x, b, w);
      } else if (s_.kind == ConvKind::kInputGrad) {
        sums[x] += Product(a, y, b, w);
      } else {
        sums[w] += Product(a, y, b, x);
      }
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      Store(out, static_cast<int64_t>(i), static_cast<float>(sums[i]),
            s_.dtype);
    }
    return absl::OkStatus();
  }

 private:
  double Product(const std::byte* a, int64_t i, const std::byte* b,
                 int64_t j) const {
    return static_cast<double>(Load(a, i, s_.dtype)) * Load(b, j, s_.dtype);
  }

  // Calls visit(x, w, y) with the offsets of each x, w and y that meet.
  template <typename Visit>
  void ForEachTap(const Visit& visit) const {
    const auto& x = s_.x;
    const auto& w = s_.w;
    const auto& y = s_.y;
    const int64_t group_outputs = w[0] / (x[1] / w[1]);
    int64_t at_y = 0;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t o = 0; o < y[1]; ++o) {
        for (int64_t p = 0; p < y[2]; ++p) {
          for (int64_t q = 0; q < y[3]; ++q, ++at_y) {
            int64_t at_w = o * w[1] * w[2] * w[3];
            for (int64_t i = 0; i < w[1]; ++i) {
              const int64_t channel = o / group_outputs * w[1] + i;
              const int64_t plane = (n * x[1] + channel) * x[2];
              for (int64_t r = 0; r < w[2]; ++r) {
                const int64_t h =
                    p * s_.strides[0] - s_.pads_begin[0] + r * s_.dilations[0];
                for (int64_t c = 0; c < w[3]; ++c, ++at_w) {
                  const int64_t v = q * s_.strides[1] - s_.pads_begin[1] +
                                    c * s_.dilations[1];
                  if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                  visit((plane + h) * x[3] + v, at_w, at_y);
                }
              }
            }
          }
        }
      }
    }
  }

  ConvSpec s_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Product>> MakeProduct(const ProductSpec& spec) {
  return std::make_unique<PlainProduct>(spec);
}

absl::StatusOr<std::unique_ptr<CudnnConv>> MakeCudnnConv(const ConvSpec& spec) {
  return std::make_unique<PlainConv>(spec);
}

}  // namespace loadline::executor::cuda
