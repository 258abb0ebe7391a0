// MatMul, Gemm and GemmSum as batches of products. If the two operands' batches
// do not advance by constant steps (broadcasts in the middle), each run that
// does is a call of its own. Tested in tests/conformance/ with a plain loop
// instead of the library, and with the library in tests/gpu.
#include <numeric>

#include "executor/cuda/cublas_lt.h"
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/product_spec.h"
#include "executor/cuda/sub_kernel.h"
#include "executor/cuda/types.h"
#include "executor/ops/matmul_shapes.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

// Alignment in bytes, up to planner::kBufferAlignmentBytes, common to the
// operands of every run.
int64_t AlignmentOf(const ProductRuns& runs, int64_t element_bytes) {
  int64_t alignment = planner::kBufferAlignmentBytes;
  for (const ProductRuns::Start& start : runs.starts) {
    for (int64_t elements : {start.a, start.b, start.y}) {
      alignment = std::gcd(alignment, elements * element_bytes);
    }
  }
  return alignment;
}

// A product over an empty inner dimension.
PreparedKernel Zeros(const Prepare& p) {
  return MakeKernel([bytes = p.output(0).bytes()](
                        const KernelArgs& args,
                        const LaunchContext& context) -> absl::Status {
    if (bytes == 0) return absl::OkStatus();
    return CudaStatus(
        cudaMemsetAsync(args.outputs[0], 0, bytes, context.stream),
        "clearing an empty product");
  });
}

PreparedKernel MatMul(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return Zeros(p);
  }
  const MatMulShapes s = MakeMatMulShapes(p);
  const ProductRuns runs = MakeProductRuns(s);
  const int64_t bytes = models::DTypeBytes(p.input(0).dtype);
  ProductSpec spec = SpecOf(p, s);
  spec.batch = runs.count;
  spec.batch_stride_a = runs.a_step;
  spec.batch_stride_b = runs.b_step;
  spec.alignment_bytes = AlignmentOf(runs, bytes);
  LOADLINE_ASSIGN_OR_RETURN(const std::shared_ptr<Product> product,
                            MakeProduct(spec));
  return MakeKernel(
      [product, runs, bytes](const KernelArgs& args,
                             const LaunchContext& context) -> absl::Status {
        for (const ProductRuns::Start& start : runs.starts) {
          LOADLINE_RETURN_IF_ERROR(
              product->Enqueue(args.inputs[0] + start.a * bytes,
                               args.inputs[1] + start.b * bytes, nullptr,
                               nullptr, args.outputs[0] + start.y * bytes,
                               args.workspace, context.stream));
        }
        return absl::OkStatus();
      },
      product->workspace_bytes(), /*describe=*/nullptr,
      [product] { return product->algorithms(); });
}

// How a Gemm adds c.
enum class Addend {
  kNone,
  kRow,     // one row, added by the library
  kMatrix,  // as large as y
  kExpand,  // anything else: first expanded into y
};

Addend AddendOf(const Prepare& p, const TensorType& y, float beta) {
  if (!p.has_input(2) || beta == 0) return Addend::kNone;
  const Ints& c = p.input(2).dims;
  if (c == y.dims) return Addend::kMatrix;
  const bool row =
      !c.empty() && c.back() == y.dims[1] && p.input(2).elements() == y.dims[1];
  return row && beta == 1.0f ? Addend::kRow : Addend::kExpand;
}

PreparedKernel Gemm(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return p.Invalid("an empty operand");
  }
  const TensorType& y = p.output(0);
  ProductSpec spec = SpecOf(p, MakeGemmShapes(p));
  const auto beta = static_cast<float>(p.attributes().Float("beta", 1.0));
  const Addend addend = AddendOf(p, y, beta);
  spec.alpha = static_cast<float>(p.attributes().Float("alpha", 1.0));
  if (addend == Addend::kRow) spec.epilogue = Epilogue::kBias;
  spec.beta =
      addend == Addend::kMatrix || addend == Addend::kExpand ? beta : 0.0f;
  std::shared_ptr<CudaKernel> expand;
  if (addend == Addend::kExpand) {
    LOADLINE_ASSIGN_OR_RETURN(
        expand,
        MakeLeanSubKernel(p, "Expand", {p.input(2)}, y, {{"shape", y.dims}}));
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::shared_ptr<Product> product,
                            MakeProduct(spec));
  return MakeKernel(
      [product, expand, addend](const KernelArgs& args,
                                const LaunchContext& context) -> absl::Status {
        std::byte* const y = args.outputs[0];
        const std::byte* c = nullptr;
        if (addend == Addend::kMatrix) c = args.inputs[2];
        if (addend == Addend::kExpand) {
          LOADLINE_RETURN_IF_ERROR(expand->Enqueue(
              {.inputs = args.inputs.subspan(2, 1), .outputs = args.outputs},
              context));
          c = y;
        }
        return product->Enqueue(
            args.inputs[0], args.inputs[1], c,
            addend == Addend::kRow ? args.inputs[2] : nullptr, y,
            args.workspace, context.stream);
      },
      product->workspace_bytes(), /*describe=*/nullptr,
      [product] { return product->algorithms(); });
}

// y = a b + c in f32, in place on c.
PreparedKernel GemmSum(const Prepare& p) {
  const DType dtype = p.input(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    return p.Unsupported(dtype);
  }
  LOADLINE_RETURN_IF_ERROR(RequireType(p, dtype, {1}, {}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {2}, {0}));
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return p.Invalid("an empty operand");
  }
  ProductSpec spec = SpecOf(p, MakeGemmShapes(p));
  const bool adds = p.has_input(2);
  spec.beta = adds ? 1.0f : 0.0f;
  LOADLINE_ASSIGN_OR_RETURN(const std::shared_ptr<Product> product,
                            MakeProduct(spec));
  return MakeKernel(
      [product, adds](const KernelArgs& args,
                      const LaunchContext& context) -> absl::Status {
        return product->Enqueue(
            args.inputs[0], args.inputs[1], adds ? args.inputs[2] : nullptr,
            nullptr, args.outputs[0], args.workspace, context.stream);
      },
      product->workspace_bytes(), /*describe=*/nullptr,
      [product] { return product->algorithms(); });
}

constexpr KernelEntry kKernels[] = {
    {"MatMul", MatMul}, {"Gemm", Gemm}, {"GemmSum", GemmSum}};

}  // namespace

absl::Span<const KernelEntry> MatMulKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
