// MatMul and Gemm as matrix products, shared by all devices.
#ifndef LOADLINE_EXECUTOR_OPS_MATMUL_SHAPES_H_
#define LOADLINE_EXECUTOR_OPS_MATMUL_SHAPES_H_

#include <vector>

#include "executor/ops/prepare.h"

namespace loadline::executor {

// One operand: its dims after transposition, the last two being the matrix, and
// its element strides.
struct MatMulOperand {
  Ints dims;
  Ints strides;
};

// y = a b, all of the same rank >= 2; leading dimensions broadcast.
struct MatMulShapes {
  MatMulOperand a, b, y;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Shapes of a MatMul. Where b is a single matrix and a is not transposed, all
// leading dimensions of a are merged into the rows of one product.
MatMulShapes MakeMatMulShapes(const Prepare& p);
// Shapes of a Gemm, without c.
MatMulShapes MakeGemmShapes(const Prepare& p);

// For GemmBiasGrad: which operand is dy, and the inner dimension over which it
// is summed.
struct SummedOperand {
  int operand = 0;
  int64_t axis = 0;
};
SummedOperand MakeSummedOperand(const Prepare& p);

// The products of a MatMul, grouped into equally long runs. A run has `count`
// products, a_step and b_step elements apart (0: the same matrix in all); the
// results y are contiguous.
struct ProductRuns {
  int64_t count = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  struct Start {
    int64_t a, b, y;  // elements from the operand's beginning
  };
  std::vector<Start> starts;  // of each run
};
ProductRuns MakeProductRuns(const MatMulShapes& shapes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_MATMUL_SHAPES_H_
