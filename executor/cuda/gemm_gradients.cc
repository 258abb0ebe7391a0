// A gradient's matrix product fused with another operator: the sum of dy, which
// the library computes while it reads dy, or the slope of Gelu, which it
// applies before it writes the product. Both for bf16 only: in f32 the product
// takes so long that an additional read does not show, and the library's tanh
// is only as accurate as bf16.
//
// If the library has no such product, or the other variant was measured to be
// faster, our own kernel runs after a plain product. Names of algorithms begin
// with the variant: "joined 66.20...", "apart 66.20...".
//
// Tested in tests/conformance/ with a plain loop instead of the library, and
// with the library in tests/gpu.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "executor/cuda/cublas_lt.h"
#include "executor/cuda/families.h"
#include "executor/cuda/product_spec.h"
#include "executor/cuda/sub_kernel.h"
#include "executor/cuda/types.h"
#include "executor/ops/matmul_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr char kJoined[] = "joined ";
constexpr char kApart[] = "apart ";
// The library requires rows of x to be a multiple of this.
constexpr int64_t kGeluColumns = 8;

// The product, with or without its epilogue.
class JoinedProduct {
 public:
  // `epilogue` kNone: always a plain product.
  static absl::StatusOr<std::shared_ptr<JoinedProduct>> Make(
      ProductSpec spec, Epilogue epilogue) {
    auto made = std::make_shared<JoinedProduct>();
    absl::string_view algorithm = spec.algorithm;
    const bool apart =
        absl::ConsumePrefix(&algorithm, kApart) || epilogue == Epilogue::kNone;
    absl::ConsumePrefix(&algorithm, kJoined);
    spec.algorithm = std::string(algorithm);
    made->spec_ = std::move(spec);
    made->epilogue_ = epilogue;
    if (!apart) {
      // The library has several codes for "not supported". If it has failed
      // altogether, the plain product below reports that.
      absl::StatusOr<std::unique_ptr<Product>> joined =
          made->MakeWith(epilogue);
      if (joined.ok()) {
        made->product_ = *std::move(joined);
        made->joined_ = true;
        return made;
      }
    }
    LOADLINE_ASSIGN_OR_RETURN(made->product_, made->MakeWith(Epilogue::kNone));
    return made;
  }

  bool joined() const { return joined_; }
  const Product& product() const { return *product_; }

  std::vector<std::string> algorithms() const {
    std::vector<std::string> names;
    if (epilogue_ != Epilogue::kNone) AddAlgorithms(kJoined, epilogue_, &names);
    AddAlgorithms(kApart, Epilogue::kNone, &names);
    return names;
  }

 private:
  absl::StatusOr<std::unique_ptr<Product>> MakeWith(Epilogue epilogue) const {
    ProductSpec spec = spec_;
    spec.epilogue = epilogue;
    return MakeProduct(spec);
  }

  void AddAlgorithms(const char* prefix, Epilogue epilogue,
                     std::vector<std::string>* names) const {
    const absl::StatusOr<std::unique_ptr<Product>> product = MakeWith(epilogue);
    if (!product.ok()) return;
    for (const std::string& name : (*product)->algorithms()) {
      names->push_back(absl::StrCat(prefix, name));
    }
  }

  ProductSpec spec_;
  Epilogue epilogue_ = Epilogue::kNone;
  std::unique_ptr<Product> product_;
  bool joined_ = false;
};

// `rest` runs after a product that is not fused with it.
template <typename Callable>
std::unique_ptr<Kernel> MakeJoinedKernel(
    const std::shared_ptr<JoinedProduct>& product, const CudaKernel& rest,
    Callable enqueue) {
  const int64_t product_bytes = product->product().workspace_bytes();
  return MakeKernel(
      std::move(enqueue),
      product->joined() ? product_bytes
                        : std::max(product_bytes, rest.workspace_bytes()),
      /*describe=*/nullptr, [product] { return product->algorithms(); });
}

absl::Status RequireOperands(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  return p.input(0).elements() == 0 || p.input(1).elements() == 0
             ? p.Invalid("an empty operand")
             : absl::OkStatus();
}

PreparedKernel GemmBiasGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOperands(p));
  const SummedOperand dy = MakeSummedOperand(p);
  const Epilogue epilogue = p.input(0).dtype != DType::kBF16 ? Epilogue::kNone
                            : dy.operand == 0                ? Epilogue::kSumA
                                                             : Epilogue::kSumB;
  LOADLINE_ASSIGN_OR_RETURN(
      const auto product,
      JoinedProduct::Make(SpecOf(p, MakeGemmShapes(p)), epilogue));
  LOADLINE_ASSIGN_OR_RETURN(
      const std::shared_ptr<CudaKernel> sum,
      MakeSubKernel(p, "ReduceSum", {p.input(dy.operand)}, p.output(1),
                    {{"axes", Ints{dy.axis}}, {"keepdims", int64_t{0}}}));
  return MakeJoinedKernel(
      product, *sum,
      [product, sum, operand = static_cast<size_t>(dy.operand)](
          const KernelArgs& args,
          const LaunchContext& context) -> absl::Status {
        LOADLINE_RETURN_IF_ERROR(product->product().Enqueue(
            args.inputs[0], args.inputs[1], nullptr,
            product->joined() ? args.outputs[1] : nullptr, args.outputs[0],
            args.workspace, context.stream));
        if (product->joined()) return absl::OkStatus();
        return sum->Enqueue({.inputs = args.inputs.subspan(operand, 1),
                             .outputs = args.outputs.subspan(1, 1),
                             .workspace = args.workspace},
                            context);
      });
}

PreparedKernel GemmGeluGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOperands(p));
  const TensorType& y = p.output(0);
  const std::string approximate = p.attributes().String("approximate", "none");
  const bool offered = y.dtype == DType::kBF16 && approximate == "tanh" &&
                       y.dims[1] % kGeluColumns == 0;
  LOADLINE_ASSIGN_OR_RETURN(
      const auto product,
      JoinedProduct::Make(SpecOf(p, MakeGemmShapes(p)),
                          offered ? Epilogue::kGeluTanhGrad : Epilogue::kNone));
  LOADLINE_ASSIGN_OR_RETURN(const std::shared_ptr<CudaKernel> slope,
                            MakeLeanSubKernel(p, "GeluGrad", {y, y}, y,
                                              {{"approximate", approximate}}));
  return MakeJoinedKernel(
      product, *slope,
      [product, slope](const KernelArgs& args,
                       const LaunchContext& context) -> absl::Status {
        const std::byte* const x = args.inputs[2];
        LOADLINE_RETURN_IF_ERROR(product->product().Enqueue(
            args.inputs[0], args.inputs[1], nullptr,
            product->joined() ? x : nullptr, args.outputs[0], args.workspace,
            context.stream));
        if (product->joined()) return absl::OkStatus();
        const std::byte* const operands[] = {args.outputs[0], x};
        return slope->Enqueue({.inputs = operands, .outputs = args.outputs},
                              context);
      });
}

constexpr KernelEntry kKernels[] = {{"GemmBiasGrad", GemmBiasGrad},
                                    {"GemmGeluGrad", GemmGeluGrad}};

}  // namespace

absl::Span<const KernelEntry> GemmGradientKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
