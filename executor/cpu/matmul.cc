// MatMul and Gemm through oneDNN's matmul, transposition as strides.
// Tested in tests/conformance/.
#include <algorithm>

#include "executor/cpu/families.h"
#include "executor/cpu/onednn.h"
#include "executor/cpu/parallel.h"
#include "executor/loop_nest.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// One operand: its dims as the product sees them (after transposition), and
// where its elements lie.
struct Operand {
  Ints dims;
  Ints strides;

  dnnl::memory::desc desc() const {
    return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
  }
};

Operand MakeOperand(const Ints& dims, bool transposed) {
  Operand o{dims, DenseStrides(dims)};
  if (transposed) {
    const size_t rank = dims.size();
    std::swap(o.dims[rank - 1], o.dims[rank - 2]);
    std::swap(o.strides[rank - 1], o.strides[rank - 2]);
  }
  return o;
}

// Dimensions of size 1 in front, up to `rank`.
Operand WithRank(Operand o, size_t rank) {
  const int64_t elements = Elements(o.dims, 0, o.dims.size());
  while (o.dims.size() < rank) {
    o.dims.insert(o.dims.begin(), 1);
    o.strides.insert(o.strides.begin(), std::max<int64_t>(elements, 1));
  }
  return o;
}

void AddProduct(OneDnnProgram& program, const Operand& a, const Operand& b,
                const Operand& y, int bias_input) {
  // A bias broadcasts over every dimension but the last.
  dnnl::memory::desc bias;
  if (bias_input >= 0) {
    Ints dims(y.dims.size(), 1);
    dims.back() = y.dims.back();
    bias = PlainDesc(dims);
  }
  const dnnl::matmul::primitive_desc pd =
      bias_input >= 0
          ? dnnl::matmul::primitive_desc(CpuEngine(), a.desc(), b.desc(), bias,
                                         y.desc(), UserScratchpad())
          : dnnl::matmul::primitive_desc(CpuEngine(), a.desc(), b.desc(),
                                         y.desc(), UserScratchpad());
  std::vector<std::pair<int, int>> arguments = {
      {DNNL_ARG_SRC, program.AddInput(0, a.desc())},
      {DNNL_ARG_WEIGHTS, program.AddInput(1, b.desc())},
      {DNNL_ARG_DST, program.AddOutput(0, y.desc())}};
  if (bias_input >= 0) {
    arguments.push_back({DNNL_ARG_BIAS, program.AddInput(bias_input, bias)});
  }
  program.AddStep(dnnl::matmul(pd), arguments, pd.scratchpad_desc());
}

// An empty product: nothing to sum, so zeros.
PreparedKernel Zeros(int64_t elements) {
  return MakeKernel([elements](const KernelArgs& args) {
    std::fill(Out(args, 0), Out(args, 0) + elements, 0.0f);
  });
}

// True if all leading dimensions of a can be rows of one product with a 2-d b.
bool CanFold(const Operand& a, const Operand& b, bool trans_a) {
  if (trans_a || a.dims.size() < 3) return false;
  return std::all_of(b.dims.begin(), b.dims.end() - 2,
                     [](int64_t d) { return d == 1; });
}

Operand Folded(const Operand& o) {
  const int64_t columns = o.dims.back();
  const int64_t rows = Elements(o.dims, 0, o.dims.size() - 1);
  return {{rows, columns}, {columns, 1}};
}

Operand LastTwo(const Operand& o) {
  return {Ints(o.dims.end() - 2, o.dims.end()),
          Ints(o.strides.end() - 2, o.strides.end())};
}

PreparedKernel MatMul(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  Ints a_dims = p.input(0).dims;
  Ints b_dims = p.input(1).dims;
  const bool trans_a =
      p.attributes().Int("trans_a", 0) != 0 && a_dims.size() > 1;
  const bool trans_b =
      p.attributes().Int("trans_b", 0) != 0 && b_dims.size() > 1;
  // A vector is a row on the left and a column on the right.
  if (a_dims.size() == 1) a_dims.insert(a_dims.begin(), 1);
  if (b_dims.size() == 1) b_dims.push_back(1);
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return Zeros(p.output(0).elements());
  }
  const size_t rank = std::max(a_dims.size(), b_dims.size());
  Operand a = WithRank(MakeOperand(a_dims, trans_a), rank);
  Operand b = WithRank(MakeOperand(b_dims, trans_b), rank);
  Ints y_dims(rank);
  for (size_t d = 0; d + 2 < rank; ++d) {
    y_dims[d] = std::max(a.dims[d], b.dims[d]);
  }
  y_dims[rank - 2] = a.dims[rank - 2];
  y_dims[rank - 1] = b.dims[rank - 1];
  Operand y = MakeOperand(y_dims, false);
  if (CanFold(a, b, trans_a)) {
    a = Folded(a);
    b = LastTwo(b);
    y = Folded(y);
  }
  return MakeOneDnnKernel(
      p, [&](OneDnnProgram& program) { AddProduct(program, a, b, y, -1); });
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
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const auto alpha = static_cast<float>(p.attributes().Float("alpha", 1.0));
  const auto beta = static_cast<float>(p.attributes().Float("beta", 1.0));
  const Operand a =
      MakeOperand(p.input(0).dims, p.attributes().Int("transA", 0) != 0);
  const Operand b =
      MakeOperand(p.input(1).dims, p.attributes().Int("transB", 0) != 0);
  const Operand y = MakeOperand(p.output(0).dims, false);
  if (p.input(0).elements() == 0 || p.input(1).elements() == 0) {
    return p.Invalid("an empty operand");
  }
  const bool has_c = p.has_input(2);
  // The usual case: c is one row, added by oneDNN itself.
  const bool row_bias = has_c && alpha == 1.0f && beta == 1.0f &&
                        p.input(2).elements() == y.dims[1] &&
                        p.input(2).rank() > 0 &&
                        p.input(2).dims.back() == y.dims[1];
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    AddProduct(program, a, b, y, row_bias ? 2 : -1);
    if (!row_bias && (has_c || alpha != 1.0f)) {
      program.SetEpilogue(ScaleAndAdd(p, alpha, beta, has_c));
    }
  });
}

constexpr KernelEntry kKernels[] = {{"MatMul", MatMul}, {"Gemm", Gemm}};

}  // namespace

absl::Span<const KernelEntry> MatMulKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
