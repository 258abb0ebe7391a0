// Attention without storing the matrix of probabilities, in tiles of 32 queries
// by 32 keys. A block of 8 warps computes one tile of the output. A warp has
// four rows of the tile and a lane one column, so maxima and sums over a row
// are shuffles within a warp, and every sum has a fixed order.
//
// Forward keeps a running maximum and sum per row (M. Milakov, N. Gimelshein,
// "Online normalizer calculation for softmax", 2018). Backward recomputes the
// probabilities from the saved statistic: one kernel per tile of keys sums dk
// and dv over the queries, then one per tile of queries sums dq over the keys.
// dq may share its memory with q, so it comes last and reads only those rows of
// q that it writes.
//
// f32 and bf16, in float; the statistic and the mask are f32. Tested in
// tests/conformance/.
#include "executor/cuda/cudnn_attention.h"
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/math.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/device/philox.h"
#include "executor/ops/attention_layout.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kWarps = kBlock / kWarp;
constexpr int kRows = kTile / kWarps;  // of a warp
// Widest row: a thread keeps its share of an output row in registers.
constexpr int64_t kMostWidth = 256;

// 32 by 32 numbers in shared memory; columns are in different banks.
struct Tile {
  float at[kTile][kTile + 1];
};
// One number for each of a thread's rows.
struct RowValues {
  float of[kRows];
};

__device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// Index in the tile of this warp's row i.
__device__ int TileRow(int i) {
  return static_cast<int>(threadIdx.x) / kWarp + i * kWarps;
}

// Loads rows [first, first + 32) and columns [column, column + 32) of one
// head's tensor; zeros outside it.
template <typename T>
__device__ void LoadTile(const T* head, int64_t first, int64_t rows,
                         int64_t stride, int64_t column, int64_t width,
                         Tile& tile) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int r = TileRow(i);
    const bool inside = first + r < rows && column + Lane() < width;
    tile.at[r][Lane()] =
        inside ? Widen(head[(first + r) * stride + column + Lane()]) : 0.0f;
  }
}

// Rows of one head's tensor.
template <typename T>
struct Rows {
  const T* head;
  int64_t first;
  int64_t count;  // of the head
  int64_t stride;
};

// Dot product of row i of `a` and row Lane() of `b`.
template <typename T>
__device__ RowValues Products(const Rows<T>& a, const Rows<T>& b, int64_t width,
                              Tile& of_a, Tile& of_b) {
  RowValues sums = {};
  for (int64_t d = 0; d < width; d += kTile) {
    LoadTile(a.head, a.first, a.count, a.stride, d, width, of_a);
    LoadTile(b.head, b.first, b.count, b.stride, d, width, of_b);
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        sums.of[i] += of_a.at[TileRow(i)][j] * of_b.at[Lane()][j];
      }
    }
    __syncthreads();
  }
  return sums;
}

// A thread's part of an output's rows: columns Lane(), Lane() + 32, ...
template <int kParts>
struct Output {
  float at[kRows][kParts];
};

// Adds the product of the tile (or its transpose) and rows of `b`.
template <bool kTransposed, int kParts, typename T>
__device__ void AddProduct(const Tile& tile, const Rows<T>& b, int64_t width,
                           Tile& of_b, Output<kParts>& sums) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    LoadTile(b.head, b.first, b.count, b.stride, part * kTile, width, of_b);
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float factor =
            kTransposed ? tile.at[j][TileRow(i)] : tile.at[TileRow(i)][j];
        sums.at[i][part] += factor * of_b.at[j][Lane()];
      }
    }
    __syncthreads();
  }
}

template <int kParts, typename T>
__device__ void StoreRows(const Output<kParts>& sums, const RowValues& factor,
                          int64_t first, int64_t rows, int64_t stride,
                          int64_t width, T* head) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t r = first + TileRow(i);
    for (int part = 0; part < kParts && r < rows; ++part) {
      const int64_t column = part * kTile + Lane();
      if (column < width) {
        head[r * stride + column] = Narrow<T>(sums.at[i][part] * factor.of[i]);
      }
    }
  }
}

__device__ RowValues Ones() {
  RowValues ones;
  for (float& one : ones.of) one = 1;
  return ones;
}

// One tile of scores: queries [row, row + 32), keys [column, column + 32).
struct Place {
  int64_t head, row, column;
};

// Scales and masks scores; minus infinity outside the matrix.
__device__ void FinishScores(const AttentionLayout& a, const Place& place,
                             const float* mask, RowValues& scores) {
  const int64_t t = place.column + Lane();
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t r = place.row + TileRow(i);
    const bool inside = r < a.rows && t < a.columns && (!a.causal || t <= r);
    if (!inside) {
      scores.of[i] = -INFINITY;
      continue;
    }
    scores.of[i] *= a.scale;
    if (a.masked) {
      scores.of[i] +=
          mask[a.MaskStart(place.head) + r * a.mask_row + t * a.mask_column];
    }
  }
}

// The factor by which dropout multiplies a probability.
__device__ float DropoutFactor(const AttentionLayout& a,
                               const StepScalars& scalars, const Place& place,
                               int i) {
  if (a.dropout.threshold == 0) return 1;
  const int64_t element =
      a.dropout.offset +
      (place.head * a.rows + place.row + TileRow(i)) * a.columns +
      place.column + Lane();
  const auto counter = static_cast<uint64_t>(element / 4);
  PhiloxCounters<1> words;
  words.words[0][0] = static_cast<uint32_t>(counter);
  words.words[1][0] = static_cast<uint32_t>(counter >> 32);
  words.words[2][0] = static_cast<uint32_t>(scalars.step);
  words.words[3][0] = a.dropout.salt;
  PhiloxRounds(words, static_cast<uint32_t>(scalars.seed),
               static_cast<uint32_t>(scalars.seed >> 32));
  return words.words[element % 4][0] >= a.dropout.threshold ? a.dropout.scale
                                                            : 0.0f;
}

template <typename T>
struct ForwardTensors {
  const T *q, *k, *v;
  const float* mask;
  const StepScalars* scalars;
  T* y;
  float* lse;
};

template <int kParts, typename T>
__device__ void ForwardTile(const AttentionLayout& a,
                            const ForwardTensors<T>& x, int64_t head,
                            int64_t row) {
  __shared__ Tile left, right, p;
  const Rows<T> q = {x.q + a.HeadStart(head, a.rows, a.width), row, a.rows,
                     a.RowStride(a.width)};
  Rows<T> k = {x.k + a.HeadStart(head, a.columns, a.width), 0, a.columns,
               a.RowStride(a.width)};
  Rows<T> v = {x.v + a.HeadStart(head, a.columns, a.value_width), 0, a.columns,
               a.RowStride(a.value_width)};
  Output<kParts> y = {};
  RowValues largest, total = {};
  for (float& of : largest.of) of = -INFINITY;
  const int64_t seen =
      a.VisibleColumns(row + kTile < a.rows ? row + kTile : a.rows);
  for (int64_t column = 0; column < seen; column += kTile) {
    const Place place = {head, row, column};
    k.first = v.first = column;
    RowValues scores = Products(q, k, a.width, left, right);
    FinishScores(a, place, x.mask, scores);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float before = largest.of[i];
      const float now =
          fmaxf(before, TeamReduce<kWarp>(scores.of[i], Maximum()));
      // Rows without any visible column so far stay at zero.
      const float of_p = now == -INFINITY ? 0 : Math::Exp(scores.of[i] - now);
      const float shrink = now == -INFINITY ? 1 : Math::Exp(before - now);
      largest.of[i] = now;
      total.of[i] = total.of[i] * shrink + TeamSum<kWarp>(of_p);
      for (float& sum : y.at[i]) sum *= shrink;
      p.at[TileRow(i)][Lane()] = of_p * DropoutFactor(a, *x.scalars, place, i);
    }
    __syncthreads();
    AddProduct<false>(p, v, a.value_width, right, y);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t r = row + TileRow(i);
    if (Lane() == 0 && r < a.rows) {
      x.lse[head * a.rows + r] = largest.of[i] + Math::Log(total.of[i]);
    }
    total.of[i] = 1.0f / total.of[i];
  }
  StoreRows(y, total, row, a.rows, a.RowStride(a.value_width), a.value_width,
            x.y + a.HeadStart(head, a.rows, a.value_width));
}

__host__ __device__ int64_t TilesOf(int64_t rows) {
  return (rows + kTile - 1) / kTile;
}

template <int kParts, typename T>
__global__ void ForwardKernel(AttentionLayout a, ForwardTensors<T> x) {
  const int64_t tiles = TilesOf(a.rows);
  for (int64_t task = blockIdx.x; task < a.heads * tiles; task += gridDim.x) {
    // A causal head's last tiles take longest, so they start first.
    ForwardTile<kParts>(a, x, task / tiles, (tiles - 1 - task % tiles) * kTile);
  }
}

template <typename T>
struct BackwardTensors {
  const T *dy, *q, *k, *v, *y;
  const float *lse, *mask;
  const StepScalars* scalars;
  float* delta;  // [heads, rows]
  T *dq, *dk, *dv;
};

// delta = sum of dy y over a row; one warp per row.
template <typename T>
__global__ void DeltaKernel(AttentionLayout a, BackwardTensors<T> x) {
  for (int64_t row = TeamIndex<kWarp>(); row < a.heads * a.rows;
       row += TeamsOfGrid<kWarp>()) {
    const int64_t at = a.HeadStart(row / a.rows, a.rows, a.value_width) +
                       row % a.rows * a.RowStride(a.value_width);
    float sum = 0;
    for (int64_t e = TeamThread<kWarp>(); e < a.value_width; e += kWarp) {
      sum += Widen(x.dy[at + e]) * Widen(x.y[at + e]);
    }
    sum = TeamSum<kWarp>(sum);
    if (TeamThread<kWarp>() == 0) x.delta[row] = sum;
  }
}

// Rows of one head, beginning with its first.
template <typename T>
struct HeadRows {
  Rows<T> dy, q, k, v;

  __device__ HeadRows(const AttentionLayout& a, const BackwardTensors<T>& x,
                      int64_t head)
      : dy{x.dy + a.HeadStart(head, a.rows, a.value_width), 0, a.rows,
           a.RowStride(a.value_width)},
        q{x.q + a.HeadStart(head, a.rows, a.width), 0, a.rows,
          a.RowStride(a.width)},
        k{x.k + a.HeadStart(head, a.columns, a.width), 0, a.columns,
          a.RowStride(a.width)},
        v{x.v + a.HeadStart(head, a.columns, a.value_width), 0, a.columns,
          a.RowStride(a.value_width)} {}

  __device__ void MoveTo(const Place& place) {
    dy.first = q.first = place.row;
    k.first = v.first = place.column;
  }
};

// Computes the tile's probabilities after dropout, and the gradient of its
// scores. On return both are visible to all threads.
template <typename T>
__device__ void ScoreGradients(const AttentionLayout& a,
                               const BackwardTensors<T>& x,
                               const HeadRows<T>& h, const Place& place,
                               Tile& left, Tile& right, Tile* kept, Tile& ds) {
  RowValues scores = Products(h.q, h.k, a.width, left, right);
  FinishScores(a, place, x.mask, scores);
  const RowValues dp = Products(h.dy, h.v, a.value_width, left, right);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t r = place.row + TileRow(i);
    const int64_t row = place.head * a.rows + r;
    const bool inside = scores.of[i] != -INFINITY;
    const float p = inside ? Math::Exp(scores.of[i] - x.lse[row]) : 0.0f;
    const float factor = inside ? DropoutFactor(a, *x.scalars, place, i) : 0.0f;
    if (kept != nullptr) kept->at[TileRow(i)][Lane()] = p * factor;
    ds.at[TileRow(i)][Lane()] =
        inside ? a.scale * p * (dp.of[i] * factor - x.delta[row]) : 0.0f;
  }
  __syncthreads();
}

template <int kParts, typename T>
__global__ void KeyGradientsKernel(AttentionLayout a, BackwardTensors<T> x) {
  __shared__ Tile left, right, kept, ds;
  const int64_t tiles = TilesOf(a.columns);
  for (int64_t task = blockIdx.x; task < a.heads * tiles; task += gridDim.x) {
    Place place = {task / tiles, 0, task % tiles * kTile};
    HeadRows<T> h(a, x, place.head);
    Output<kParts> dk = {};
    Output<kParts> dv = {};
    // Rows before the tile's first key do not attend to it.
    if (a.causal) place.row = place.column;
    for (; place.row < a.rows; place.row += kTile) {
      h.MoveTo(place);
      ScoreGradients(a, x, h, place, left, right, &kept, ds);
      AddProduct<true>(kept, h.dy, a.value_width, left, dv);
      AddProduct<true>(ds, h.q, a.width, left, dk);
    }
    StoreRows(dk, Ones(), place.column, a.columns, a.RowStride(a.width),
              a.width, x.dk + a.HeadStart(place.head, a.columns, a.width));
    StoreRows(dv, Ones(), place.column, a.columns, a.RowStride(a.value_width),
              a.value_width,
              x.dv + a.HeadStart(place.head, a.columns, a.value_width));
  }
}

template <int kParts, typename T>
__global__ void QueryGradientsKernel(AttentionLayout a, BackwardTensors<T> x) {
  __shared__ Tile left, right, ds;
  const int64_t tiles = TilesOf(a.rows);
  for (int64_t task = blockIdx.x; task < a.heads * tiles; task += gridDim.x) {
    Place place = {task / tiles, (tiles - 1 - task % tiles) * kTile, 0};
    HeadRows<T> h(a, x, place.head);
    Output<kParts> dq = {};
    const int64_t end = place.row + kTile;
    const int64_t seen = a.VisibleColumns(end < a.rows ? end : a.rows);
    for (; place.column < seen; place.column += kTile) {
      h.MoveTo(place);
      ScoreGradients(a, x, h, place, left, right, nullptr, ds);
      AddProduct<false>(ds, h.k, a.width, left, dq);
    }
    StoreRows(dq, Ones(), place.row, a.rows, a.RowStride(a.width), a.width,
              x.dq + a.HeadStart(place.head, a.rows, a.width));
  }
}

// Calls body(parts), with the number of tiles across the widest row as a
// constant.
template <typename Body>
absl::Status WithParts(int64_t width, const Body& body) {
  if (width <= kTile) return body(std::integral_constant<int, 1>());
  if (width <= 2 * kTile) return body(std::integral_constant<int, 2>());
  if (width <= 4 * kTile) return body(std::integral_constant<int, 4>());
  return body(std::integral_constant<int, 8>());
}

template <typename T>
absl::Status LaunchBackward(const AttentionLayout& a,
                            const BackwardTensors<T>& x, cudaStream_t stream) {
  LOADLINE_RETURN_IF_ERROR(LaunchKernel(DeltaKernel<T>,
                                        GridFor(a.heads * a.rows * kWarp),
                                        kBlock, 0, stream, a, x));
  return WithParts(std::max(a.width, a.value_width), [&](auto parts) {
    constexpr int kParts = decltype(parts)::value;
    LOADLINE_RETURN_IF_ERROR(LaunchKernel(
        KeyGradientsKernel<kParts, T>, GridFor(a.heads * TilesOf(a.columns), 1),
        kBlock, 0, stream, a, x));
    return LaunchKernel(QueryGradientsKernel<kParts, T>,
                        GridFor(a.heads * TilesOf(a.rows), 1), kBlock, 0,
                        stream, a, x);
  });
}

absl::Status CheckWidths(const Prepare& p, const AttentionLayout& a) {
  if (std::max(a.width, a.value_width) <= kMostWidth) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "no CUDA kernel for heads wider than ", kMostWidth, " (node ",
      p.node().name, " has ", std::max(a.width, a.value_width), ")"));
}

// Whether to return cuDNN's result. Our own kernel is used without cuDNN, or if
// cuDNN has none.
bool IsAnswer(const absl::Status& library) {
  return !absl::IsUnimplemented(library) && !absl::IsUnavailable(library);
}

PreparedKernel Attention(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const AttentionLayout a,
                            MakeAttentionLayout(p, 0, 3));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.output(0).dtype, {0, 1, 2}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {}, {1}));
  PreparedKernel library = PrepareCudnnAttention(p, a, /*backward=*/false);
  if (IsAnswer(library.status())) return library;
  LOADLINE_RETURN_IF_ERROR(CheckWidths(p, a));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([a](const KernelArgs& args, const LaunchContext& launch) {
      const ForwardTensors<T> x = {
          In<T>(args, 0),     In<T>(args, 1),
          In<T>(args, 2),     a.masked ? In<float>(args, 3) : nullptr,
          args.scalars,       Out<T>(args, 0),
          Out<float>(args, 1)};
      return WithParts(a.value_width, [&](auto parts) {
        return LaunchKernel(ForwardKernel<decltype(parts)::value, T>,
                            GridFor(a.heads * TilesOf(a.rows), 1), kBlock, 0,
                            launch.stream, a, x);
      });
    });
  });
}

PreparedKernel AttentionGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const AttentionLayout a,
                            MakeAttentionLayout(p, 1, 6));
  LOADLINE_RETURN_IF_ERROR(
      RequireType(p, p.output(0).dtype, {0, 1, 2, 3, 4}, {0, 1, 2}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {5}, {}));
  PreparedKernel library = PrepareCudnnAttention(p, a, /*backward=*/true);
  if (IsAnswer(library.status())) return library;
  LOADLINE_RETURN_IF_ERROR(CheckWidths(p, a));
  const int64_t delta_bytes =
      a.heads * a.rows * static_cast<int64_t>(sizeof(float));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [a](const KernelArgs& args, const LaunchContext& launch) {
          return LaunchBackward<T>(
              a,
              {In<T>(args, 0), In<T>(args, 1), In<T>(args, 2), In<T>(args, 3),
               In<T>(args, 4), In<float>(args, 5),
               a.masked ? In<float>(args, 6) : nullptr, args.scalars,
               Workspace(args), Out<T>(args, 0), Out<T>(args, 1),
               Out<T>(args, 2)},
              launch.stream);
        },
        delta_bytes);
  });
}

constexpr KernelEntry kKernels[] = {{"Attention", Attention},
                                    {"AttentionGrad", AttentionGrad}};

}  // namespace

absl::Span<const KernelEntry> AttentionKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
