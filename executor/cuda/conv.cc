// Convolution and its two gradients by cuDNN; a bias is added afterwards, by
// our own kernel, over the result. A 1-d image is a 2-d one of height 1.
//
// Tensor cores want channels last, and a graph's tensors have them first. cuDNN
// takes either, transposing inside where it has to; the same engines over
// operands that our own kernels have transposed into the workspace are offered
// beside them, and taken where they are measured to be faster, or are the only
// ones. Names of algorithms begin with the layout: "nhwc eng11_k2=3".
//
// Tested in tests/conformance/ with a plain convolution in the library's place,
// and with the library by the suite in tests/gpu.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "executor/algorithms.h"
#include "executor/align_up.h"
#include "executor/conv_shapes.h"
#include "executor/cuda/cudnn.h"
#include "executor/cuda/families.h"
#include "executor/cuda/sub_kernel.h"
#include "executor/cuda/types.h"
#include "planner/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr char kFirst[] = "nchw ";
constexpr char kLast[] = "nhwc ";

absl::StatusOr<ConvSpec> MakeSpec(const Prepare& p, ConvKind kind,
                                  const TensorType& x, const TensorType& w,
                                  const TensorType& y) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  LOADLINE_ASSIGN_OR_RETURN(const ConvShapes s, MakeConvShapes(p, x, w, y));
  ConvSpec spec{.kind = kind,
                .dtype = x.dtype,
                .x = s.x,
                .w = s.w,
                .y = s.y,
                .strides = s.strides,
                .dilations = s.dilations,
                .pads_begin = s.pads_begin,
                .pads_end = s.pads_end};
  if (s.strides.size() == 1) {
    for (Ints* dims : {&spec.x, &spec.w, &spec.y}) {
      dims->insert(dims->begin() + 2, 1);
    }
    spec.strides.insert(spec.strides.begin(), 1);
    spec.dilations.insert(spec.dilations.begin(), 1);
    spec.pads_begin.insert(spec.pads_begin.begin(), 0);
    spec.pads_end.insert(spec.pads_end.begin(), 0);
  }
  return spec;
}

// Two operands and a result, as ConvSpec lists them.
std::array<Ints, 3> TensorsOf(const ConvSpec& spec) {
  switch (spec.kind) {
    case ConvKind::kForward:
      return {spec.x, spec.w, spec.y};
    case ConvKind::kInputGrad:
      return {spec.y, spec.w, spec.x};
    default:
      return {spec.y, spec.x, spec.w};
  }
}

// A convolution of tensors as graphs have them.
class Convolution {
 public:
  static absl::StatusOr<std::shared_ptr<Convolution>> Make(const Prepare& p,
                                                           ConvSpec spec) {
    auto conv = std::make_shared<Convolution>();
    const std::string wanted = p.attributes().String(kAlgorithmAttribute, "");
    absl::string_view engine = wanted;
    const bool last = absl::ConsumePrefix(&engine, kLast);
    absl::ConsumePrefix(&engine, kFirst);
    spec.algorithm = std::string(engine);
    conv->spec_ = std::move(spec);
    absl::Status status = last ? conv->PrepareLast(p) : conv->PrepareFirst();
    if (absl::IsUnimplemented(status)) {
      status = last ? conv->PrepareFirst() : conv->PrepareLast(p);
    }
    LOADLINE_RETURN_IF_ERROR(status);
    return conv;
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }

  std::vector<std::string> algorithms() const {
    std::vector<std::string> names;
    ConvSpec spec = spec_;
    for (bool last : {false, true}) {
      // Without tensor cores the order of channels matters little.
      if (last && spec.dtype == DType::kF32 && !names.empty()) break;
      spec.channels_last = last;
      for (const std::string& engine : CudnnAlgorithms(spec)) {
        names.push_back(absl::StrCat(last ? kLast : kFirst, engine));
      }
    }
    return names;
  }

  absl::Status Enqueue(const std::byte* a, const std::byte* b, std::byte* out,
                       std::byte* workspace,
                       const LaunchContext& context) const {
    if (!spec_.channels_last) {
      return operation_->Enqueue({a, b, out}, workspace, context.stream);
    }
    std::byte* const own_a = workspace + at_[0];
    std::byte* const own_b = workspace + at_[1];
    std::byte* const own_out = workspace + at_[2];
    LOADLINE_RETURN_IF_ERROR(transpose_[0]->Enqueue(
        {.inputs = {&a, 1}, .outputs = {&own_a, 1}}, context));
    LOADLINE_RETURN_IF_ERROR(transpose_[1]->Enqueue(
        {.inputs = {&b, 1}, .outputs = {&own_b, 1}}, context));
    LOADLINE_RETURN_IF_ERROR(operation_->Enqueue(
        {own_a, own_b, own_out}, workspace + rest_at_, context.stream));
    const std::byte* const made = own_out;
    return transpose_[2]->Enqueue({.inputs = {&made, 1}, .outputs = {&out, 1}},
                                  context);
  }

 private:
  absl::Status PrepareFirst() {
    spec_.channels_last = false;
    LOADLINE_ASSIGN_OR_RETURN(operation_, MakeCudnn(spec_));
    workspace_bytes_ = operation_->workspace_bytes();
    return absl::OkStatus();
  }

  absl::Status PrepareLast(const Prepare& p) {
    spec_.channels_last = true;
    LOADLINE_ASSIGN_OR_RETURN(operation_, MakeCudnn(spec_));
    const std::array<Ints, 3> tensors = TensorsOf(spec_);
    int64_t end = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Ints& d = tensors[i];
      const TensorType first{spec_.dtype, d};
      const TensorType last{spec_.dtype, {d[0], d[2], d[3], d[1]}};
      const bool out = i == 2;
      LOADLINE_ASSIGN_OR_RETURN(
          transpose_[i],
          MakeLeanSubKernel(
              p, "Transpose", {out ? last : first}, out ? first : last,
              {{"perm", out ? Ints{0, 3, 1, 2} : Ints{0, 2, 3, 1}}}));
      at_[i] = end;
      end += AlignUp(first.bytes());
    }
    rest_at_ = end;
    workspace_bytes_ = end + operation_->workspace_bytes();
    return absl::OkStatus();
  }

  ConvSpec spec_;
  std::shared_ptr<CudnnOperation> operation_;
  int64_t workspace_bytes_ = 0;
  // Of channels last only: where the transposed tensors lie in the workspace.
  std::array<std::shared_ptr<CudaKernel>, 3> transpose_;
  std::array<int64_t, 3> at_ = {};
  int64_t rest_at_ = 0;
};

PreparedKernel MakeConvKernel(const std::shared_ptr<Convolution>& conv,
                              const std::shared_ptr<CudaKernel>& add_bias) {
  return MakeKernel(
      [conv, add_bias](const KernelArgs& args,
                       const LaunchContext& context) -> absl::Status {
        std::byte* const y = args.outputs[0];
        LOADLINE_RETURN_IF_ERROR(conv->Enqueue(args.inputs[0], args.inputs[1],
                                               y, args.workspace, context));
        if (add_bias == nullptr) return absl::OkStatus();
        const std::byte* const addends[] = {y, args.inputs[2]};
        return add_bias->Enqueue({.inputs = addends, .outputs = args.outputs},
                                 context);
      },
      conv->workspace_bytes(), /*describe=*/nullptr,
      [conv] { return conv->algorithms(); });
}

PreparedKernel Conv(const Prepare& p) {
  const TensorType& y = p.output(0);
  LOADLINE_ASSIGN_OR_RETURN(ConvSpec spec, MakeSpec(p, ConvKind::kForward,
                                                    p.input(0), p.input(1), y));
  LOADLINE_ASSIGN_OR_RETURN(const auto conv,
                            Convolution::Make(p, std::move(spec)));
  std::shared_ptr<CudaKernel> add_bias;
  if (p.has_input(2)) {
    TensorType bias = p.input(2);
    bias.dims.resize(y.dims.size() - 1, 1);  // over all but the channels
    LOADLINE_ASSIGN_OR_RETURN(add_bias,
                              MakeLeanSubKernel(p, "Add", {y, bias}, y));
  }
  return MakeConvKernel(conv, add_bias);
}

PreparedKernel ConvInputGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      ConvSpec spec,
      MakeSpec(p, ConvKind::kInputGrad, p.output(0), p.input(1), p.input(0)));
  LOADLINE_ASSIGN_OR_RETURN(const auto conv,
                            Convolution::Make(p, std::move(spec)));
  return MakeConvKernel(conv, nullptr);
}

PreparedKernel ConvWeightGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      ConvSpec spec,
      MakeSpec(p, ConvKind::kWeightGrad, p.input(1), p.output(0), p.input(0)));
  LOADLINE_ASSIGN_OR_RETURN(const auto conv,
                            Convolution::Make(p, std::move(spec)));
  return MakeConvKernel(conv, nullptr);
}

constexpr KernelEntry kKernels[] = {
    {"Conv", Conv},
    {"ConvInputGrad", ConvInputGrad},
    {"ConvWeightGrad", ConvWeightGrad},
};

}  // namespace

absl::Span<const KernelEntry> ConvKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
