#include "passes/fuse_transpose.h"

#include <gtest/gtest.h>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;

TEST(FuseTranspose, BecomesAFlagOfEveryProduct) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId w = b.Parameter("w", {8, 8});
  const ValueId t = b.Op("Transpose", {w}, {{"perm", Ints{1, 0}}});
  const ValueId y = b.Op("MatMul", {x, t});
  const ValueId z = b.Op("Gemm", {y, t});
  b.Output(b.Op("MatMul", {t, z}, {{"trans_b", int64_t{1}}}));
  ASSERT_TRUE(FuseTranspose(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = MatMul(x, w) {trans_b=1}\n"
            "%1 = Gemm(%0, w) {transB=1}\n"
            "%2 = MatMul(w, %1) {trans_a=1, trans_b=1}\n"
            "output %2\n");
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

TEST(FuseTranspose, TwoTransposesCancel) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3, 4, 8});
  const ValueId k = b.Input("k", {2, 3, 5, 8});
  const Ints swap{0, 1, 3, 2};
  const ValueId t = b.Op("Transpose", {k}, {{"perm", swap}});
  b.Output(b.Op("MatMul", {x, t}));
  const ValueId u = b.Op("Transpose", {t}, {{"perm", swap}});
  b.Output(b.Op("MatMul", {x, u}, {{"trans_b", int64_t{1}}}));
  ASSERT_TRUE(FuseTranspose(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = MatMul(x, k) {trans_b=1}\n"
            "%1 = MatMul(x, k) {trans_b=1}\n"
            "output %0\n"
            "output %1\n");
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

TEST(FuseTranspose, OtherReadersAndOtherPermutationsStay) {
  Builder b;
  const ValueId x = b.Input("x", {4, 4, 4});
  const ValueId t = b.Op("Transpose", {x}, {{"perm", Ints{0, 2, 1}}});
  const ValueId y = b.Op("MatMul", {x, t});
  const ValueId u = b.Op("Transpose", {x}, {{"perm", Ints{1, 0, 2}}});
  b.Output(b.Op("Add", {y, t}));
  b.Output(b.Op("MatMul", {u, u}));
  ASSERT_TRUE(FuseTranspose(b.graph).ok());
  EXPECT_EQ(Describe(b.graph), R"(%0 = Transpose(x) {perm=[0,2,1]}
%1 = MatMul(x, x) {trans_b=1}
%2 = Transpose(x) {perm=[1,0,2]}
%3 = Add(%1, %0)
%4 = MatMul(%2, %2)
output %3
output %4
)");
}

}  // namespace
}  // namespace loadline::passes
