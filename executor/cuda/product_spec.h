// Describes a node's product for the library.
#ifndef LOADLINE_EXECUTOR_CUDA_PRODUCT_SPEC_H_
#define LOADLINE_EXECUTOR_CUDA_PRODUCT_SPEC_H_

#include "executor/cuda/cublas_lt.h"
#include "executor/cuda/prepare.h"
#include "executor/device/algorithms.h"
#include "executor/ops/matmul_shapes.h"

namespace loadline::executor::cuda {

// One product of these shapes, with the algorithm that the node names.
inline ProductSpec SpecOf(const Prepare& p, const MatMulShapes& s) {
  const size_t rank = s.y.dims.size();
  return {.dtype = p.input(0).dtype,
          .result = p.output(0).dtype,
          .rows = s.y.dims[rank - 2],
          .columns = s.y.dims[rank - 1],
          .inner = s.a.dims[rank - 1],
          .transpose_a = s.transpose_a,
          .transpose_b = s.transpose_b,
          .algorithm = p.attributes().String(kAlgorithmAttribute, "")};
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_PRODUCT_SPEC_H_
