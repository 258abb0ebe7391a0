// Radix sort passes: tiles count their digits; one block turns the counts into
// offsets, by digit and then tile; tiles move their items there. Within a tile
// a warp has adjacent items and moves 32 at a time; lanes with the same digit
// are ordered by lane. Tested through GatherGrad in tests/conformance/ and in
// tests/conformance/cuda_sort_test.cc.
#include "executor/cuda/launch.h"
#include "executor/cuda/sort.h"
#include "executor/cuda/team.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr int kWarps = kBlock / kWarp;
constexpr int kWarpItems = 256;  // items of a tile that one warp moves
constexpr int64_t kTileItems = kWarps * kWarpItems;
static_assert(kDigits == kBlock, "a thread per digit");

__device__ int DigitOf(const Keyed& item, int pass) {
  return static_cast<int>(item.key >> (pass * kDigitBits)) & (kDigits - 1);
}

// Mask of the lanes in this warp with the same digit as this lane; lanes
// without an item form a group of their own.
__device__ unsigned LanesWithDigit(int digit) {
  return __match_any_sync(kAllLanes, digit);
}

// Calls body(item, has item) for the warp's items, 32 at a time, on all lanes.
template <typename Body>
__device__ void ForWarpItems(const Keyed* items, int64_t count,
                             const Body& body) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t first = blockIdx.x * kTileItems + warp * kWarpItems;
  for (int i = lane; i < kWarpItems; i += kWarp) {
    const bool has = first + i < count;
    body(has ? items[first + i] : Keyed{0, 0}, has);
  }
}

// Adds the warp's digits to its counters; one lane of each digit writes.
__device__ void CountDigits(const Keyed* items, int64_t count, int pass,
                            int* counters) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  ForWarpItems(items, count, [&](const Keyed& item, bool has) {
    const int digit = has ? DigitOf(item, pass) : kDigits;
    const unsigned same = LanesWithDigit(digit);
    const bool first = __popc(same & ((1u << lane) - 1)) == 0;
    if (has && first) counters[digit] += __popc(same);
    __syncwarp();  // before the next 32 items use the counters
  });
}

// counts[digit * tiles + tile].
__global__ void CountKernel(const Keyed* items, int64_t count, int pass,
                            int* counts) {
  __shared__ int counters[kWarps][kDigits];
  const int digit = static_cast<int>(threadIdx.x);
  for (int w = 0; w < kWarps; ++w) counters[w][digit] = 0;
  __syncthreads();
  CountDigits(items, count, pass, counters[threadIdx.x / kWarp]);
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += counters[w][digit];
  counts[int64_t{digit} * gridDim.x + blockIdx.x] = sum;
}

// Returns the sum of all earlier threads' values, and `total` of all.
__device__ int BlockPrefix(int value, int& total) {
  __shared__ int of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int sum = value;
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const int before =
        __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(delta));
    if (lane >= delta) sum += before;
  }
  if (lane == kWarp - 1) of_warp[warp] = sum;
  __syncthreads();
  int base = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) base += of_warp[w];
    total += of_warp[w];
  }
  __syncthreads();  // before the next call overwrites the values
  return base + sum - value;
}

// Replaces counts[i] by the sum of the counts before i; one block.
__global__ void PlaceKernel(int* counts, int64_t n) {
  int carried = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t i = begin + threadIdx.x;
    const int value = i < n ? counts[i] : 0;
    int total = 0;
    const int before = BlockPrefix(value, total);
    if (i < n) counts[i] = carried + before;
    carried += total;
  }
}

__global__ void MoveKernel(const Keyed* items, int64_t count, int pass,
                           const int* places, Keyed* moved) {
  // First the counts, then the next free index, by warp and digit.
  __shared__ int next[kWarps][kDigits];
  const int digit = static_cast<int>(threadIdx.x);
  for (int w = 0; w < kWarps; ++w) next[w][digit] = 0;
  __syncthreads();
  int* mine = next[threadIdx.x / kWarp];
  CountDigits(items, count, pass, mine);
  __syncthreads();
  int place = places[int64_t{digit} * gridDim.x + blockIdx.x];
  for (int w = 0; w < kWarps; ++w) {
    const int of_warp = next[w][digit];
    next[w][digit] = place;
    place += of_warp;
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  ForWarpItems(items, count, [&](const Keyed& item, bool has) {
    const int d = has ? DigitOf(item, pass) : kDigits;
    const unsigned same = LanesWithDigit(d);
    const int before = __popc(same & ((1u << lane) - 1));
    if (has) moved[mine[d] + before] = item;
    __syncwarp();  // after all reads, before writes
    if (has && before == 0) mine[d] += __popc(same);
    __syncwarp();
  });
}

}  // namespace

StableSort::StableSort(int64_t count, int64_t keys)
    : count_(count), tiles_((count + kTileItems - 1) / kTileItems) {
  while (keys > 1 && ((keys - 1) >> (passes_ * kDigitBits)) > 0) ++passes_;
}

Keyed* StableSort::List(std::byte* workspace, int i) const {
  const int64_t bytes = planner::AlignUp(count_ * int64_t{sizeof(Keyed)});
  return reinterpret_cast<Keyed*>(workspace + i * bytes);
}

int64_t StableSort::workspace_bytes() const {
  return 2 * planner::AlignUp(count_ * int64_t{sizeof(Keyed)}) +
         planner::AlignUp(tiles_ * kDigits * int64_t{sizeof(int)});
}

Keyed* StableSort::Unsorted(std::byte* workspace) const {
  return List(workspace, 0);
}

const Keyed* StableSort::Sorted(std::byte* workspace) const {
  return List(workspace, passes_ % 2);
}

absl::Status StableSort::Enqueue(std::byte* workspace,
                                 cudaStream_t stream) const {
  if (count_ == 0) return absl::OkStatus();
  const auto grid = static_cast<unsigned>(tiles_);
  int* counts = reinterpret_cast<int*>(List(workspace, 2));
  for (int pass = 0; pass < passes_; ++pass) {
    const Keyed* from = List(workspace, pass % 2);
    Keyed* to = List(workspace, 1 - pass % 2);
    LOADLINE_RETURN_IF_ERROR(LaunchKernel(CountKernel, grid, kBlock, 0, stream,
                                          from, count_, pass, counts));
    LOADLINE_RETURN_IF_ERROR(LaunchKernel(PlaceKernel, 1, kBlock, 0, stream,
                                          counts, tiles_ * kDigits));
    LOADLINE_RETURN_IF_ERROR(LaunchKernel(MoveKernel, grid, kBlock, 0, stream,
                                          from, count_, pass, counts, to));
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor::cuda
