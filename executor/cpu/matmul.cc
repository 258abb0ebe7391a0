// MatMul, Gemm and GemmSum through oneDNN's matmul; transposition is expressed
// as strides. Tested in tests/conformance/.
#include <algorithm>
#include <memory>

#include "executor/cpu/families.h"
#include "executor/cpu/onednn.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/matmul_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

dnnl::memory::desc Desc(const MatMulOperand& o, DType dtype) {
  return dnnl::memory::desc(o.dims, OneDnnType(dtype), o.strides);
}

// Descriptor of an operand as the product reads or writes it.
dnnl::memory::desc ProductDesc(const MatMulOperand& o, DType dtype) {
  const DType type = ProductType(dtype);
  return type == dtype ? Desc(o, dtype) : PlainDesc(o.dims, type);
}

void AddProduct(OneDnnProgram& program, const MatMulShapes& s, DType dtype,
                int bias_input) {
  // A bias broadcasts over every dimension but the last.
  Ints bias_dims(s.y.dims.size(), 1);
  bias_dims.back() = s.y.dims.back();
  const dnnl::memory::desc bias = PlainDesc(bias_dims, ProductType(dtype));
  const dnnl::memory::desc a = ProductDesc(s.a, dtype);
  const dnnl::memory::desc b = ProductDesc(s.b, dtype);
  const dnnl::memory::desc y = ProductDesc(s.y, dtype);
  const dnnl::matmul::primitive_desc pd =
      bias_input >= 0 ? dnnl::matmul::primitive_desc(CpuEngine(), a, b, bias, y,
                                                     UserScratchpad())
                      : dnnl::matmul::primitive_desc(CpuEngine(), a, b, y,
                                                     UserScratchpad());
  const auto output = program.AddOutput(0, Desc(s.y, dtype));
  const auto result = program.ResultSlot(output, y);
  std::vector<std::pair<int, int>> arguments = {
      {DNNL_ARG_SRC,
       program.Reordered(program.AddInput(0, Desc(s.a, dtype)), a)},
      {DNNL_ARG_WEIGHTS,
       program.Reordered(program.AddInput(1, Desc(s.b, dtype)), b)},
      {DNNL_ARG_DST, result}};
  if (bias_input >= 0) {
    const auto given =
        program.AddInput(bias_input, PlainDesc(bias_dims, dtype));
    arguments.push_back({DNNL_ARG_BIAS, program.Reordered(given, bias)});
  }
  program.AddStep(dnnl::matmul(pd), arguments, pd.scratchpad_desc());
  program.StoreResult(result, output);
}

// A product over an empty inner dimension: zeros.
PreparedKernel Zeros(int64_t bytes) {
  return MakeKernel([bytes](const KernelArgs& args) {
    std::fill(args.outputs[0], args.outputs[0] + bytes, std::byte{0});
  });
}

PreparedKernel MatMul(const Prepare& p) {
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return Zeros(p.output(0).bytes());
  }
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    AddProduct(program, MakeMatMulShapes(p), p.output(0).dtype, -1);
  });
}

// y = alpha y + beta c, c broadcast.
std::function<void(const KernelArgs&)> ScaleAndAdd(const Prepare& p,
                                                   float alpha, float beta,
                                                   bool add) {
  const Ints& dims = p.output(0).dims;
  const Ints c_strides =
      add ? BroadcastStrides(p.input(2).dims, dims) : Ints(dims.size(), 0);
  const LoopNest<2> nest(dims, {c_strides, DenseStrides(dims)});
  return [=](const KernelArgs& args) {
    const float none = 0;
    const float* c = add ? In(args, 2) : &none;
    float* y = Out(args, 0);
    const int64_t stride = nest.inner_stride(0);
    nest.Run(
        0, nest.elements(), [&](const std::array<int64_t, 2>& at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            y[at[1] + i] = alpha * y[at[1] + i] + beta * c[at[0] + i * stride];
          }
        });
  };
}

PreparedKernel Gemm(const Prepare& p) {
  const DType dtype = p.output(0).dtype;
  const auto alpha = static_cast<float>(p.attributes().Float("alpha", 1.0));
  const auto beta = static_cast<float>(p.attributes().Float("beta", 1.0));
  const MatMulShapes s = MakeGemmShapes(p);
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return p.Invalid("an empty operand");
  }
  const bool has_c = p.has_input(2);
  // The usual case: c is one row, which oneDNN adds itself.
  const bool row_bias = has_c && alpha == 1.0f && beta == 1.0f &&
                        p.input(2).elements() == s.y.dims[1] &&
                        p.input(2).rank() > 0 &&
                        p.input(2).dims.back() == s.y.dims[1];
  // Applied after oneDNN's product, these would round a second time.
  const bool scaled = !row_bias && (has_c || alpha != 1.0f);
  if (scaled && dtype != DType::kF32) return p.Unsupported(dtype);
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    AddProduct(program, s, dtype, row_bias ? 2 : -1);
    if (scaled) {
      program.SetEpilogue(ScaleAndAdd(p, alpha, beta, has_c));
    }
  });
}

// y = a b + c in f32; c is read from y, where it is copied if it is not there.
PreparedKernel GemmSum(const Prepare& p) {
  const DType dtype = p.input(0).dtype;
  const MatMulShapes s = MakeGemmShapes(p);
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return p.Invalid("an empty operand");
  }
  const bool adds = p.has_input(2);
  LOADLINE_ASSIGN_OR_RETURN(
      std::shared_ptr<Kernel> product,
      MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
        const dnnl::memory::desc a = ProductDesc(s.a, dtype);
        const dnnl::memory::desc b = ProductDesc(s.b, dtype);
        const dnnl::memory::desc y = Desc(s.y, DType::kF32);
        dnnl::primitive_attr attributes = UserScratchpad();
        if (adds) {
          dnnl::post_ops sum;
          sum.append_sum();
          attributes.set_post_ops(sum);
        }
        const dnnl::matmul::primitive_desc pd(CpuEngine(), a, b, y, attributes);
        program.AddStep(
            dnnl::matmul(pd),
            {{DNNL_ARG_SRC,
              program.Reordered(program.AddInput(0, Desc(s.a, dtype)), a)},
             {DNNL_ARG_WEIGHTS,
              program.Reordered(program.AddInput(1, Desc(s.b, dtype)), b)},
             {DNNL_ARG_DST, program.AddOutput(0, y)}},
            pd.scratchpad_desc());
      }));
  return MakeKernel(
      [product, adds, bytes = p.output(0).bytes()](const KernelArgs& args) {
        if (adds && args.inputs[2] != args.outputs[0]) {
          std::copy(args.inputs[2], args.inputs[2] + bytes, args.outputs[0]);
        }
        return product->Run(args);
      },
      product->workspace_bytes());
}

constexpr KernelEntry kMatMulKernels[] = {
    {"MatMul", MatMul}, {"Gemm", Gemm}, {"GemmSum", GemmSum}};

}  // namespace

absl::Span<const KernelEntry> MatMulKernels() { return kMatMulKernels; }

}  // namespace loadline::executor::cpu
