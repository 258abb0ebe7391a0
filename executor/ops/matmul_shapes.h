// MatMul and Gemm as products of matrices, once for all devices.
#ifndef LOADLINE_EXECUTOR_OPS_MATMUL_SHAPES_H_
#define LOADLINE_EXECUTOR_OPS_MATMUL_SHAPES_H_

#include <vector>

#include "executor/ops/prepare.h"

namespace loadline::executor {

// One operand: its dims as the product sees them (after transposition), the
// last two the matrix, and where its elements lie.
struct MatMulOperand {
  Ints dims;
  Ints strides;
};

// y = a b, all of one rank, at least 2; leading dimensions broadcast.
struct MatMulShapes {
  MatMulOperand a, b, y;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Of a MatMul. Where b is a single matrix and a is not transposed, all leading
// dimensions of a are rows of one product.
MatMulShapes MakeMatMulShapes(const Prepare& p);
// Of a Gemm, without c.
MatMulShapes MakeGemmShapes(const Prepare& p);

// Of a GemmBiasGrad: which operand is dy, and which of its dimensions is the
// inner one, over which it is summed.
struct SummedOperand {
  int operand = 0;
  int64_t axis = 0;
};
SummedOperand MakeSummedOperand(const Prepare& p);

// The products of a MatMul, in runs of equal steps: `count` of them, a_step
// and b_step elements from one to the next (0: the same matrix in all), y's
// one behind the other. Every run is as long as the next.
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
