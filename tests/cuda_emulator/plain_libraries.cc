// Replaces cuBLASLt and cuDNN: computes the requested products, convolutions
// and attentions with plain loops over the description that the libraries would
// get. So the code that calls the libraries (batches, biases, transpositions,
// geometry) is tested without a GPU; the libraries themselves are not.
//
// Products and convolutions offer two algorithms, which sum from opposite ends
// and need different workspaces.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "executor/cuda/cublas_lt.h"
#include "executor/cuda/cudnn.h"
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

// Slope of 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
double GeluSlope(double x) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

constexpr char kUp[] = "up";
constexpr char kDown[] = "down";

// A workspace that must be provided, as for the libraries.
int64_t WorkspaceBytes(const std::string& algorithm) {
  return algorithm == kDown ? 1024 : 512;
}

class PlainProduct final : public Product {
 public:
  explicit PlainProduct(const ProductSpec& spec) : s_(spec) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(s_.algorithm);
  }
  std::vector<std::string> algorithms() const override { return {kUp, kDown}; }

  absl::Status Enqueue(const std::byte* a, const std::byte* b,
                       const std::byte* c, const std::byte* auxiliary,
                       std::byte* y, std::byte* workspace,
                       Stream) const override {
    std::memset(workspace, 0xFF, workspace_bytes());
    const bool down = s_.algorithm == kDown;
    const int64_t a_row = s_.transpose_a ? 1 : s_.inner;
    const int64_t a_inner = s_.transpose_a ? s_.rows : 1;
    const int64_t b_inner = s_.transpose_b ? 1 : s_.columns;
    const int64_t b_column = s_.transpose_b ? s_.inner : 1;
    for (int64_t n = 0; n < s_.batch; ++n) {
      for (int64_t i = 0; i < s_.rows; ++i) {
        for (int64_t j = 0; j < s_.columns; ++j) {
          double sum = 0;
          for (int64_t step = 0; step < s_.inner; ++step) {
            const int64_t k = down ? s_.inner - 1 - step : step;
            const int64_t at_a =
                n * s_.batch_stride_a + i * a_row + k * a_inner;
            const int64_t at_b =
                n * s_.batch_stride_b + k * b_inner + j * b_column;
            sum += static_cast<double>(Load(a, at_a, s_.dtype)) *
                   Load(b, at_b, s_.dtype);
          }
          const int64_t at = (n * s_.rows + i) * s_.columns + j;
          double value = s_.alpha * sum;
          if (s_.beta != 0) value += s_.beta * Load(c, at, s_.result);
          if (s_.epilogue == Epilogue::kBias)
            value += Load(auxiliary, j, s_.dtype);
          if (s_.epilogue == Epilogue::kGeluTanhGrad) {
            value *= GeluSlope(Load(auxiliary, at, s_.dtype));
          }
          Store(y, at, static_cast<float>(value), s_.result);
        }
      }
    }
    auto* const sums = const_cast<std::byte*>(auxiliary);
    if (s_.epilogue == Epilogue::kSumA) {
      StoreSums(a, s_.rows, a_row, a_inner, sums);
    }
    if (s_.epilogue == Epilogue::kSumB) {
      StoreSums(b, s_.columns, b_column, b_inner, sums);
    }
    return absl::OkStatus();
  }

 private:
  void StoreSums(const std::byte* x, int64_t count, int64_t step,
                 int64_t inner_step, std::byte* sums) const {
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < s_.inner; ++k) {
        sum += Load(x, i * step + k * inner_step, s_.dtype);
      }
      Store(sums, i, static_cast<float>(sum), s_.dtype);
    }
  }

  ProductSpec s_;
};

// [n, c, h, w] as volumes of depth 1.
models::Ints Volume(models::Ints dims) {
  if (dims.size() == 4) dims.insert(dims.begin() + 2, 1);
  return dims;
}

// Element offsets of [n, c, d, h, w] in either layout.
struct Layout {
  int64_t n, c, d, h, w;

  Layout(const models::Ints& s, bool channels_last)
      : n(s[1] * s[2] * s[3] * s[4]),
        c(channels_last ? 1 : s[2] * s[3] * s[4]),
        d(channels_last ? s[3] * s[4] * s[1] : s[3] * s[4]),
        h(channels_last ? s[4] * s[1] : s[4]),
        w(channels_last ? s[1] : 1) {}
};

class PlainConv final : public CudnnOperation {
 public:
  explicit PlainConv(const ConvSpec& spec)
      : s_(spec),
        x_(Volume(spec.x), spec.channels_last),
        w_(Volume(spec.w), spec.channels_last),
        y_(Volume(spec.y), spec.channels_last) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(s_.algorithm);
  }

  // Adds every product of an x and a w to its y, or computes whichever of the
  // three tensors is requested.
  absl::Status Enqueue(absl::Span<const std::byte* const> tensors,
                       std::byte* workspace, Stream) const override {
    std::memset(workspace, 0xFF, workspace_bytes());
    const std::byte* const a = tensors[0];
    const std::byte* const b = tensors[1];
    const models::Ints& out_dims = s_.kind == ConvKind::kForward     ? s_.y
                                   : s_.kind == ConvKind::kInputGrad ? s_.x
                                                                     : s_.w;
    std::vector<double> sums(
        static_cast<size_t>(models::TensorType{s_.dtype, out_dims}.elements()));
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
      Store(const_cast<std::byte*>(tensors[2]), static_cast<int64_t>(i),
            static_cast<float>(sums[i]), s_.dtype);
    }
    return absl::OkStatus();
  }

 private:
  double Product(const std::byte* a, int64_t i, const std::byte* b,
                 int64_t j) const {
    return static_cast<double>(Load(a, i, s_.dtype)) * Load(b, j, s_.dtype);
  }

  // Calls visit(x, w, y) with the offsets of every x, w and y that belong
  // together.
  template <typename Visit>
  void ForEachTap(const Visit& visit) const {
    const models::Ints x = Volume(s_.x), w = Volume(s_.w), y = Volume(s_.y);
    const int64_t group_outputs = w[0] / (x[1] / w[1]);
    const int64_t taps = w[1] * w[2] * w[3] * w[4];
    const int64_t outputs = y[0] * y[1] * y[2] * y[3] * y[4];
    for (int64_t output = 0; output < outputs; ++output) {
      const int64_t q = output % y[4], p = output / y[4] % y[3];
      const int64_t e = output / (y[4] * y[3]) % y[2];
      const int64_t o = output / (y[4] * y[3] * y[2]) % y[1];
      const int64_t n = output / (y[4] * y[3] * y[2] * y[1]);
      for (int64_t step = 0; step < taps; ++step) {
        const int64_t tap = s_.algorithm == kDown ? taps - 1 - step : step;
        const int64_t c = tap % w[4], r = tap / w[4] % w[3];
        const int64_t k = tap / (w[4] * w[3]) % w[2];
        const int64_t i = tap / (w[4] * w[3] * w[2]);
        const int64_t z = At(0, e, k), h = At(1, p, r), v = At(2, q, c);
        if (z < 0 || z >= x[2] || h < 0 || h >= x[3] || v < 0 || v >= x[4]) {
          continue;
        }
        const int64_t channel = o / group_outputs * w[1] + i;
        visit(n * x_.n + channel * x_.c + z * x_.d + h * x_.h + v * x_.w,
              o * w_.n + i * w_.c + k * w_.d + r * w_.h + c * w_.w,
              n * y_.n + o * y_.c + e * y_.d + p * y_.h + q * y_.w);
      }
    }
  }

  // The image's coordinate along a volume's axis for an output and a tap.
  int64_t At(size_t axis, int64_t output, int64_t tap) const {
    const size_t missing = 3 - s_.strides.size();
    if (axis < missing) return 0;
    const size_t d = axis - missing;
    return output * s_.strides[d] - s_.pads[d] + tap * s_.dilations[d];
  }

  ConvSpec s_;
  Layout x_, w_, y_;
};

class PlainAttention final : public CudnnOperation {
 public:
  explicit PlainAttention(const AttentionSpec& spec) : s_(spec) {}

  int64_t workspace_bytes() const override { return WorkspaceBytes(kUp); }

  absl::Status Enqueue(absl::Span<const std::byte* const> tensors,
                       std::byte* workspace, Stream) const override {
    std::memset(workspace, 0xFF, workspace_bytes());
    // As in a library, results may be written while operands are still read.
    const size_t inputs = s_.backward ? 6 : 3;
    for (size_t i = inputs; i < tensors.size(); ++i) {
      const bool keys = s_.backward && i > inputs;
      const int64_t width = s_.backward && i < 8 ? s_.width : s_.value_width;
      const int64_t numbers = (keys ? s_.columns : s_.rows) * s_.batch *
                              s_.heads * (i == 4 ? 2 : width);
      std::memset(const_cast<std::byte*>(tensors[i]), 0xFF, numbers * 2);
    }
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t h = 0; h < s_.heads; ++h) {
        s_.backward ? Backward(tensors, b, h) : Forward(tensors, b, h);
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t At(int64_t b, int64_t h, int64_t rows, int64_t row,
             int64_t width) const {
    return ((b * rows + row) * s_.heads + h) * width;
  }
  // Dot product of a row of one tensor and a row of another.
  static double Dot(const std::byte* x, int64_t at_x, const std::byte* y,
                    int64_t at_y, int64_t width) {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d) {
      sum += static_cast<double>(Load(x, at_x + d, kType)) *
             Load(y, at_y + d, kType);
    }
    return sum;
  }
  // tensor[at, at + width) = sums.
  static void StoreRow(const std::byte* tensor, int64_t at,
                       const std::vector<double>& sums) {
    for (size_t d = 0; d < sums.size(); ++d) {
      Store(const_cast<std::byte*>(tensor), at + static_cast<int64_t>(d),
            static_cast<float>(sums[d]), kType);
    }
  }
  static void AddRow(const std::byte* x, int64_t at, double factor,
                     double* sums, int64_t width) {
    for (int64_t d = 0; d < width; ++d) {
      sums[d] += factor * Load(x, at + d, kType);
    }
  }

  std::vector<double> Scores(const std::byte* q, const std::byte* k, int64_t b,
                             int64_t h, int64_t row) const {
    std::vector<double> scores;
    for (int64_t t = 0; t < s_.columns && (!s_.causal || t <= row); ++t) {
      scores.push_back(s_.scale * Dot(q, At(b, h, s_.rows, row, s_.width), k,
                                      At(b, h, s_.columns, t, s_.width),
                                      s_.width));
    }
    return scores;
  }

  void Forward(absl::Span<const std::byte* const> x, int64_t b,
               int64_t h) const {
    for (int64_t row = 0; row < s_.rows; ++row) {
      const std::vector<double> scores = Scores(x[0], x[1], b, h, row);
      const double most = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (double score : scores) total += std::exp(score - most);
      std::vector<double> y(s_.value_width);
      for (size_t t = 0; t < scores.size(); ++t) {
        AddRow(x[2],
               At(b, h, s_.columns, static_cast<int64_t>(t), s_.value_width),
               std::exp(scores[t] - most) / total, y.data(), s_.value_width);
      }
      StoreRow(x[3], At(b, h, s_.rows, row, s_.value_width), y);
      Store(const_cast<std::byte*>(x[4]), (b * s_.heads + h) * s_.rows + row,
            static_cast<float>(most + std::log(total)), models::DType::kF32);
    }
  }

  void Backward(absl::Span<const std::byte* const> x, int64_t b,
                int64_t h) const {
    std::vector<double> dk(s_.columns * s_.width);
    std::vector<double> dv(s_.columns * s_.value_width);
    for (int64_t row = 0; row < s_.rows; ++row) {
      const std::vector<double> scores = Scores(x[1], x[2], b, h, row);
      const int64_t at_y = At(b, h, s_.rows, row, s_.value_width);
      const int64_t at_q = At(b, h, s_.rows, row, s_.width);
      const double delta = Dot(x[0], at_y, x[4], at_y, s_.value_width);
      const double lse =
          Load(x[5], (b * s_.heads + h) * s_.rows + row, models::DType::kF32);
      std::vector<double> dq(s_.width);
      for (int64_t t = 0; t < static_cast<int64_t>(scores.size()); ++t) {
        const double p = std::exp(scores[t] - lse);
        const double dp =
            Dot(x[0], at_y, x[3], At(b, h, s_.columns, t, s_.value_width),
                s_.value_width);
        const double ds = s_.scale * p * (dp - delta);
        AddRow(x[2], At(b, h, s_.columns, t, s_.width), ds, dq.data(),
               s_.width);
        AddRow(x[1], at_q, ds, &dk[t * s_.width], s_.width);
        AddRow(x[0], at_y, p, &dv[t * s_.value_width], s_.value_width);
      }
      StoreRow(x[6], at_q, dq);
    }
    for (int64_t t = 0; t < s_.columns; ++t) {
      const auto row = [t](const std::vector<double>& rows, int64_t width) {
        return std::vector<double>(rows.begin() + t * width,
                                   rows.begin() + (t + 1) * width);
      };
      StoreRow(x[7], At(b, h, s_.columns, t, s_.width), row(dk, s_.width));
      StoreRow(x[8], At(b, h, s_.columns, t, s_.value_width),
               row(dv, s_.value_width));
    }
  }

  static constexpr models::DType kType = models::DType::kBF16;
  AttentionSpec s_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Product>> MakeProduct(const ProductSpec& spec) {
  // A library may also report an unsupported product with another code.
  if (spec.epilogue == Epilogue::kSumB && spec.inner % 8 != 0) {
    return absl::InternalError("an odd inner dimension");
  }
  return std::make_unique<PlainProduct>(spec);
}

absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(
    const ConvSpec& spec) {
  return std::make_unique<PlainConv>(spec);
}

absl::StatusOr<std::unique_ptr<CudnnOperation>> MakeCudnn(
    const AttentionSpec& spec) {
  // Some widths are unsupported, as in cuDNN.
  if (spec.width % 8 != 0) return absl::UnimplementedError("an odd width");
  return std::make_unique<PlainAttention>(spec);
}

std::vector<std::string> CudnnAlgorithms(const ConvSpec&) {
  return {kUp, kDown};
}

std::vector<std::string> CudnnAlgorithms(const AttentionSpec&) { return {kUp}; }

}  // namespace loadline::executor::cuda
