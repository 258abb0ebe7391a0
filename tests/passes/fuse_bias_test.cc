#include "passes/fuse_bias.h"

#include <gtest/gtest.h>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;

TEST(FuseBias, BecomesThirdInputOfAGemm) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId w = b.Parameter("w", {16, 8});
  const ValueId row = b.Parameter("b", {16});
  const ValueId m = b.Op("MatMul", {x, w}, {{"trans_b", int64_t{1}}});
  b.Output(b.Op("Add", {row, m}));  // either order
  ExpectBecomes(FuseBias, b.graph,
                "%0 = Gemm(x, w, b) {transB=1}\n"
                "output %0\n");
}

TEST(FuseBias, LeadingDimensionsBecomeRows) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3, 8});
  const ValueId w = b.Parameter("w", {8, 16});
  const ValueId row = b.Parameter("b", {16});
  const ValueId y = b.Op("Add", {b.Op("MatMul", {x, w}), row});
  b.Output(b.Op("Relu", {y}));
  ExpectBecomes(FuseBias, b.graph,
                "%0 = Reshape(x) {shape=[6,8]}\n"
                "%1 = Gemm(%0, w, b)\n"
                "%2 = Reshape(%1) {shape=[2,3,16]}\n"
                "%3 = Relu(%2)\n"
                "output %3\n");
}

TEST(FuseBias, LeavesAloneWhatIsNotOneRowOrOneMatrix) {
  struct Shapes {
    std::vector<int64_t> x, w, bias;
    int64_t trans_a;
  };
  for (const Shapes& s : std::vector<Shapes>{
           {{4, 8}, {8, 16}, {4, 1}, 0},      // a column
           {{4, 8}, {8, 16}, {4, 16}, 0},     // a matrix
           {{4, 8}, {8, 16}, {1}, 0},         // a number
           {{4, 8}, {8, 16}, {3, 4, 16}, 0},  // enlarges the sum
           {{4, 8}, {8, 1}, {5}, 0},          // also enlarges it
           {{8}, {8, 16}, {16}, 0},           // a vector
           {{2, 4, 8}, {2, 8, 16}, {16}, 0},  // one w per x
           {{2, 8, 4}, {8, 16}, {16}, 1}}) {  // rows are not contiguous
    Builder b;
    const ValueId x = b.Input("x", s.x);
    const ValueId w = b.Parameter("w", s.w);
    const ValueId bias = b.Parameter("b", s.bias);
    const ValueId m = b.Op("MatMul", {x, w}, {{"trans_a", s.trans_a}});
    b.Output(b.Op("Add", {m, bias}));
    ExpectUntouched(FuseBias, b.graph);
  }
}

TEST(FuseBias, LeavesAloneAProductThatIsReadTwice) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId w = b.Parameter("w", {8, 16});
  const ValueId row = b.Parameter("b", {16});
  const ValueId m = b.Op("MatMul", {x, w});
  b.Output(b.Op("Mul", {b.Op("Add", {m, row}), m}));
  ExpectUntouched(FuseBias, b.graph);

  Builder named;
  const ValueId v = named.Input("x", {1, 8});
  const ValueId product = named.Op("MatMul", {v, named.Parameter("w", {8, 8})});
  named.Output(product);
  named.Output(named.Op("Add", {product, named.Parameter("b", {8})}));
  ExpectUntouched(FuseBias, named.graph);
}

}  // namespace
}  // namespace loadline::passes
