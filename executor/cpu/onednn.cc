// oneDNN programs; tested through Conv, MatMul and Gemm in tests/conformance/.
#include "executor/cpu/onednn.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/base/align.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

const dnnl::engine& CpuEngine() {
  // Never destroyed: kernels may outlive the statics of this file.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16
                               : dnnl::memory::data_type::f32;
}

DType ProductType(DType dtype) {
  static const bool has_bf16 = [] {
    const dnnl::memory::desc square = PlainDesc({1, 1}, DType::kBF16);
    try {
      dnnl::matmul::primitive_desc(CpuEngine(), square, square, square);
    } catch (const dnnl::error&) {
      return false;
    }
    return true;
  }();
  return dtype == DType::kBF16 && !has_bf16 ? DType::kF32 : dtype;
}

dnnl::memory::desc PlainDesc(const Ints& dims, DType dtype) {
  const Ints strides = DenseStrides(dims);
  return dnnl::memory::desc(dims, OneDnnType(dtype), strides);
}

dnnl::memory::desc AnyDesc(const Ints& dims, DType dtype) {
  return dnnl::memory::desc(dims, OneDnnType(ProductType(dtype)),
                            dnnl::memory::format_tag::any);
}

OneDnnProgram::OneDnnProgram() : stream_(CpuEngine()) {}

OneDnnProgram::Slot OneDnnProgram::Add(Place place, int64_t operand,
                                       int64_t first_byte,
                                       const dnnl::memory::desc& desc) {
  tensors_.push_back({place, operand, first_byte,
                      dnnl::memory(desc, CpuEngine(), DNNL_MEMORY_NONE)});
  return static_cast<Slot>(tensors_.size()) - 1;
}

OneDnnProgram::Slot OneDnnProgram::AddInput(int index,
                                            const dnnl::memory::desc& desc,
                                            int64_t first_byte) {
  return Add(Place::kInput, index, first_byte, desc);
}

OneDnnProgram::Slot OneDnnProgram::AddOutput(int index,
                                             const dnnl::memory::desc& desc,
                                             int64_t first_byte) {
  return Add(Place::kOutput, index, first_byte, desc);
}

OneDnnProgram::Slot OneDnnProgram::AddTemporary(
    const dnnl::memory::desc& desc) {
  const Slot slot = Add(Place::kTemporary, 0, next_temporary_, desc);
  next_temporary_ +=
      planner::AlignUp(static_cast<int64_t>(desc.get_size()), kAlignment);
  temporary_bytes_ = std::max(temporary_bytes_, next_temporary_);
  return slot;
}

OneDnnProgram::Slot OneDnnProgram::Reordered(Slot from,
                                             const dnnl::memory::desc& desc) {
  const dnnl::memory::desc given = tensors_[from].memory.get_desc();
  if (given == desc) return from;
  const Slot to = AddTemporary(desc);
  const dnnl::reorder::primitive_desc pd(CpuEngine(), given, CpuEngine(), desc,
                                         UserScratchpad());
  AddStep(dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
          pd.scratchpad_desc());
  return to;
}

OneDnnProgram::Slot OneDnnProgram::ResultSlot(Slot to,
                                              const dnnl::memory::desc& desc) {
  return tensors_[to].memory.get_desc() == desc ? to : AddTemporary(desc);
}

void OneDnnProgram::StoreResult(Slot result, Slot to) {
  if (result == to) return;
  const dnnl::reorder::primitive_desc pd(
      CpuEngine(), tensors_[result].memory.get_desc(), CpuEngine(),
      tensors_[to].memory.get_desc(), UserScratchpad());
  AddStep(dnnl::reorder(pd), {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, to}},
          pd.scratchpad_desc());
}

void OneDnnProgram::AddStep(const dnnl::primitive& primitive,
                            const std::vector<std::pair<int, Slot>>& arguments,
                            const dnnl::memory::desc& scratchpad) {
  Step step;
  step.primitive = primitive;
  for (const auto& [argument, slot] : arguments) {
    step.arguments.push_back({argument, tensors_[slot].memory.get()});
  }
  if (scratchpad.get_size() > 0) {
    step.scratchpad = dnnl::memory(scratchpad, CpuEngine(), DNNL_MEMORY_NONE);
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, step.scratchpad.get()});
    scratchpad_bytes_ =
        std::max(scratchpad_bytes_,
                 planner::AlignUp(static_cast<int64_t>(scratchpad.get_size()),
                                  kAlignment));
  }
  steps_.push_back(std::move(step));
}

void OneDnnProgram::AddTo(Slot sum, Slot addend) {
  const dnnl::memory::desc desc = tensors_[sum].memory.get_desc();
  const dnnl::binary::primitive_desc pd(CpuEngine(),
                                        dnnl::algorithm::binary_add, desc, desc,
                                        desc, UserScratchpad());
  AddStep(
      dnnl::binary(pd),
      {{DNNL_ARG_SRC_0, sum}, {DNNL_ARG_SRC_1, addend}, {DNNL_ARG_DST, sum}},
      pd.scratchpad_desc());
}

int64_t OneDnnProgram::workspace_bytes() const {
  return temporary_bytes_ + scratchpad_bytes_;
}

void* OneDnnProgram::Address(const Tensor& tensor,
                             const KernelArgs& args) const {
  switch (tensor.place) {
    case Place::kInput:
      // oneDNN has no const memory; steps only read inputs.
      return const_cast<std::byte*>(args.inputs[tensor.operand]) +
             tensor.first_byte;
    case Place::kOutput:
      return args.outputs[tensor.operand] + tensor.first_byte;
    case Place::kTemporary:
      break;
  }
  return args.workspace + tensor.first_byte;
}

absl::Status OneDnnProgram::Run(const KernelArgs& args) {
  for (const Tensor& tensor : tensors_) {
    dnnl_memory_set_data_handle(tensor.memory.get(), Address(tensor, args));
  }
  for (const Step& step : steps_) {
    if (step.scratchpad) {
      dnnl_memory_set_data_handle(step.scratchpad.get(),
                                  args.workspace + temporary_bytes_);
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        step.primitive.get(), stream_.get(),
        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) {
      return absl::InternalError(
          absl::StrCat("oneDNN primitive failed with status ", status));
    }
  }
  if (epilogue_) epilogue_(args);
  return absl::OkStatus();
}

PreparedKernel MakeOneDnnKernel(
    const Prepare& p, const std::function<void(OneDnnProgram&)>& make) {
  try {
    auto program = std::make_unique<OneDnnProgram>();
    make(*program);
    return program;
  } catch (const dnnl::error& error) {
    const std::string what = absl::StrCat(p.node().op, " (node ", p.node().name,
                                          "): oneDNN refuses: ", error.what());
    return error.status == dnnl_unimplemented
               ? absl::UnimplementedError(what)
               : absl::InvalidArgumentError(what);
  }
}

}  // namespace loadline::executor::cpu
