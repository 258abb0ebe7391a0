// Convolution and its two gradients by cuDNN; our own kernel then adds the
// bias. A 1-d image is a 2-d one of height 1.
//
// Tensor cores need channels last, while a graph's tensors have channels first.
// cuDNN takes either and transposes internally where needed. The same engines
// are also offered with operands that our own kernels transpose into the
// workspace; these are used if they were measured to be faster or are the only
// ones. Names of algorithms begin with the layout: "nhwc eng11_k2=3".
//
// Some cuDNN engines compute wrong sums, without an error, if a border is wider
// on one side (cuDNN 9.14, weight gradients, eng1). They therefore get an image
// that contains the excess of the wider side as zeros.
//
// Tested in tests/conformance/ with a plain loop instead of the library, and
// with the library in tests/gpu.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "executor/cuda/cudnn.h"
#include "executor/cuda/families.h"
#include "executor/cuda/sub_kernel.h"
#include "executor/cuda/types.h"
#include "executor/device/algorithms.h"
#include "executor/ops/conv_shapes.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr char kFirst[] = "nchw ";
constexpr char kLast[] = "nhwc ";

// The convolution that the library computes, and the graph's image.
struct ConvProblem {
  ConvSpec spec;  // spec.x is the image including the excess of its borders
  Ints image;     // NCHW, or NCDHW
  Ints starts;    // where the image begins in spec.x
};

absl::StatusOr<ConvProblem> MakeConvProblem(const Prepare& p, ConvKind kind,
                                            const TensorType& x,
                                            const TensorType& w,
                                            const TensorType& y) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  LOADLINE_ASSIGN_OR_RETURN(const ConvShapes s, MakeConvShapes(p, x, w, y));
  ConvProblem problem{.spec = {.kind = kind,
                               .dtype = x.dtype,
                               .x = s.x,
                               .w = s.w,
                               .y = s.y,
                               .strides = s.strides,
                               .dilations = s.dilations},
                      .image = s.x};
  ConvSpec& spec = problem.spec;
  for (size_t d = 0; d < s.strides.size(); ++d) {
    const int64_t pad = std::min(s.pads_begin[d], s.pads_end[d]);
    spec.pads.push_back(pad);
    spec.x[2 + d] += s.pads_begin[d] + s.pads_end[d] - 2 * pad;
    problem.starts.push_back(s.pads_begin[d] - pad);
  }
  if (s.strides.size() == 1) {
    for (Ints* dims : {&spec.x, &spec.w, &spec.y, &problem.image}) {
      dims->insert(dims->begin() + 2, 1);
    }
    spec.strides.insert(spec.strides.begin(), 1);
    spec.dilations.insert(spec.dilations.begin(), 1);
    spec.pads.insert(spec.pads.begin(), 0);
    problem.starts.insert(problem.starts.begin(), 0);
  }
  return problem;
}

// Two operands and a result, in ConvSpec's order.
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

// A convolution of tensors in the graph's layout.
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
      // Without tensor cores the layout makes little difference.
      if (last && spec.dtype == DType::kF32 && !names.empty()) break;
      if (last && spec.x.size() != 4) break;  // PrepareLast
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
    if (spec_.x.size() != 4) {
      return absl::UnimplementedError("channels last is for images of 2-d");
    }
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
      end += planner::AlignUp(first.bytes());
    }
    rest_at_ = end;
    workspace_bytes_ = end + operation_->workspace_bytes();
    return absl::OkStatus();
  }

  ConvSpec spec_;
  std::shared_ptr<CudnnOperation> operation_;
  int64_t workspace_bytes_ = 0;
  // Channels last only: positions of the transposed tensors in the workspace.
  std::array<std::shared_ptr<CudaKernel>, 3> transpose_;
  std::array<int64_t, 3> at_ = {};
  int64_t rest_at_ = 0;
};

// The same for an image whose border is wider on one side.
class BorderedConvolution {
 public:
  static absl::StatusOr<std::shared_ptr<BorderedConvolution>> Make(
      const Prepare& p, const ConvProblem& problem) {
    auto made = std::make_shared<BorderedConvolution>();
    const ConvSpec& spec = problem.spec;
    made->kind_ = spec.kind;
    LOADLINE_ASSIGN_OR_RETURN(made->inner_, Convolution::Make(p, spec));
    made->workspace_bytes_ = made->inner_->workspace_bytes();
    if (spec.x == problem.image) return made;
    Ints ends = problem.starts, axes;
    for (size_t d = 0; d < ends.size(); ++d) {
      ends[d] += problem.image[2 + d];
      axes.push_back(static_cast<int64_t>(2 + d));
    }
    models::Attributes window = {{"starts", problem.starts},
                                 {"ends", ends},
                                 {"axes", axes},
                                 {"steps", Ints(axes.size(), 1)}};
    const TensorType image{spec.dtype, problem.image};
    const TensorType wide{spec.dtype, spec.x};
    if (spec.kind == ConvKind::kInputGrad) {
      LOADLINE_ASSIGN_OR_RETURN(
          made->border_, MakeLeanSubKernel(p, "Slice", {wide}, image, window));
    } else {
      window.Set("shape", wide.dims);
      LOADLINE_ASSIGN_OR_RETURN(
          made->border_,
          MakeLeanSubKernel(p, "SliceGrad", {image}, wide, window));
    }
    made->wide_at_ = planner::AlignUp(made->workspace_bytes_);
    made->workspace_bytes_ = made->wide_at_ + wide.bytes();
    return made;
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }
  std::vector<std::string> algorithms() const { return inner_->algorithms(); }

  absl::Status Enqueue(const std::byte* a, const std::byte* b, std::byte* out,
                       std::byte* workspace,
                       const LaunchContext& context) const {
    if (border_ == nullptr) {
      return inner_->Enqueue(a, b, out, workspace, context);
    }
    std::byte* const wide = workspace + wide_at_;
    if (kind_ == ConvKind::kInputGrad) {
      LOADLINE_RETURN_IF_ERROR(inner_->Enqueue(a, b, wide, workspace, context));
      return Move(wide, out, context);
    }
    const std::byte*& image = kind_ == ConvKind::kForward ? a : b;
    LOADLINE_RETURN_IF_ERROR(Move(image, wide, context));
    image = wide;
    return inner_->Enqueue(a, b, out, workspace, context);
  }

 private:
  absl::Status Move(const std::byte* from, std::byte* to,
                    const LaunchContext& context) const {
    return border_->Enqueue({.inputs = {&from, 1}, .outputs = {&to, 1}},
                            context);
  }

  ConvKind kind_ = ConvKind::kForward;
  std::shared_ptr<Convolution> inner_;
  std::shared_ptr<CudaKernel> border_;  // null: borders are symmetric
  int64_t wide_at_ = 0;
  int64_t workspace_bytes_ = 0;
};

PreparedKernel MakeConvKernel(const Prepare& p, ConvKind kind,
                              const TensorType& x, const TensorType& w,
                              const TensorType& y,
                              const std::shared_ptr<CudaKernel>& add_bias) {
  LOADLINE_ASSIGN_OR_RETURN(const ConvProblem problem,
                            MakeConvProblem(p, kind, x, w, y));
  LOADLINE_ASSIGN_OR_RETURN(const auto conv,
                            BorderedConvolution::Make(p, problem));
  return MakeKernel(
      [conv, add_bias](const KernelArgs& args,
                       const LaunchContext& context) -> absl::Status {
        std::byte* const made = args.outputs[0];
        LOADLINE_RETURN_IF_ERROR(conv->Enqueue(args.inputs[0], args.inputs[1],
                                               made, args.workspace, context));
        if (add_bias == nullptr) return absl::OkStatus();
        const std::byte* const addends[] = {made, args.inputs[2]};
        return add_bias->Enqueue({.inputs = addends, .outputs = args.outputs},
                                 context);
      },
      conv->workspace_bytes(), /*describe=*/nullptr,
      [conv] { return conv->algorithms(); });
}

PreparedKernel Conv(const Prepare& p) {
  const TensorType& y = p.output(0);
  std::shared_ptr<CudaKernel> add_bias;
  if (p.has_input(2)) {
    TensorType bias = p.input(2);
    bias.dims.resize(y.dims.size() - 1, 1);  // over all but the channels
    LOADLINE_ASSIGN_OR_RETURN(add_bias,
                              MakeLeanSubKernel(p, "Add", {y, bias}, y));
  }
  return MakeConvKernel(p, ConvKind::kForward, p.input(0), p.input(1), y,
                        add_bias);
}

PreparedKernel ConvInputGrad(const Prepare& p) {
  return MakeConvKernel(p, ConvKind::kInputGrad, p.output(0), p.input(1),
                        p.input(0), /*add_bias=*/nullptr);
}

PreparedKernel ConvWeightGrad(const Prepare& p) {
  return MakeConvKernel(p, ConvKind::kWeightGrad, p.input(1), p.output(0),
                        p.input(0), /*add_bias=*/nullptr);
}

constexpr KernelEntry kKernels[] = {
    {"Conv", Conv},
    {"ConvInputGrad", ConvInputGrad},
    {"ConvWeightGrad", ConvWeightGrad},
};

}  // namespace

absl::Span<const KernelEntry> ConvKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
