// Checks of the types that a kernel supports, at prepare time.
#ifndef LOADLINE_EXECUTOR_CUDA_TYPES_H_
#define LOADLINE_EXECUTOR_CUDA_TYPES_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "executor/ops/prepare.h"

namespace loadline::executor::cuda {

// Unsupported unless these inputs, if present, and outputs have that type.
inline absl::Status RequireType(const executor::Prepare& p, DType dtype,
                                std::initializer_list<int> inputs,
                                std::initializer_list<int> outputs) {
  for (int i : inputs) {
    if (p.has_input(i) && p.input(i).dtype != dtype) {
      return p.Unsupported(p.input(i).dtype);
    }
  }
  for (int i : outputs) {
    if (i < p.outputs() && p.output(i).dtype != dtype) {
      return p.Unsupported(p.output(i).dtype);
    }
  }
  return absl::OkStatus();
}

// Unsupported unless all inputs and outputs have the same type.
inline absl::Status RequireOneType(const executor::Prepare& p) {
  const DType dtype = p.output(0).dtype;
  for (int i = 0; i < p.inputs(); ++i) {
    const absl::Status status = RequireType(p, dtype, {i}, {});
    if (!status.ok()) return status;
  }
  for (int i = 0; i < p.outputs(); ++i) {
    const absl::Status status = RequireType(p, dtype, {}, {i});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The same, and that type is f32 or bf16, which the libraries support.
inline absl::Status RequireFloat(const executor::Prepare& p) {
  const DType dtype = p.output(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    return p.Unsupported(dtype);
  }
  return RequireOneType(p);
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_TYPES_H_
