// Sums of squares, and the factor that clips a global norm. Both add in an
// order that follows from the shape alone. Tested in tests/conformance/.
#include <algorithm>
#include <cstdint>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/ops/optimizer_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int64_t kMostParts = 256;

__global__ void PartsKernel(const float* x, int64_t n, double* parts) {
  double sum = 0;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void SumPartsKernel(const double* parts, int64_t count,
                               float* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlock) sum += parts[i];
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) *result = static_cast<float>(sum);
}

PreparedKernel SumSquares(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0}, {0}));
  const int64_t n = p.input(0).elements();
  const int64_t parts =
      std::clamp<int64_t>((n + kBlock - 1) / kBlock, 1, kMostParts);
  return MakeKernel(
      [=](const KernelArgs& args, const LaunchContext& launch) {
        auto* sums = Workspace<double>(args);
        LOADLINE_RETURN_IF_ERROR(
            LaunchKernel(PartsKernel, static_cast<unsigned>(parts), kBlock, 0,
                         launch.stream, In(args, 0), n, sums));
        return LaunchKernel(SumPartsKernel, 1, kBlock, 0, launch.stream, sums,
                            parts, Out(args, 0));
      },
      parts * int64_t{sizeof(double)});
}

__global__ void ClipFactorKernel(const float* squares, int64_t n,
                                 double max_norm, float* factor) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kBlock) sum += squares[i];
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) *factor = ClipFactorOf(sum, max_norm);
}

PreparedKernel ClipFactor(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0}, {0}));
  const int64_t n = p.input(0).elements();
  const double max_norm = p.attributes().Float("max_norm", 1);
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    return LaunchKernel(ClipFactorKernel, 1, kBlock, 0, launch.stream,
                        In(args, 0), n, max_norm, Out(args, 0));
  });
}

constexpr KernelEntry kKernels[] = {{"SumSquares", SumSquares},
                                    {"ClipFactor", ClipFactor}};

}  // namespace

absl::Span<const KernelEntry> GradientNormKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
