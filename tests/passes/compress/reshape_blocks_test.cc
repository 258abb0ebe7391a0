#include "passes/compress/reshape_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

// "2>0(8/9,1/1)": a factor of 8 from axis 2 into axis 0 with their strides;
// blocks are separated by " | ".
std::string Blocks(const std::vector<int64_t>& from,
                   const std::vector<int64_t>& to) {
  Builder b;
  b.Op("Reshape", {b.Input("x", from)}, {{"shape", to}});
  std::vector<std::string> texts;
  for (const ReshapeBlock& block : BlocksOfReshape(b.graph, b.graph.nodes[0])) {
    std::vector<std::string> factors;
    for (const ReshapeFactor& f : block.factors) {
      factors.push_back(absl::StrCat(f.in.axis, ">", f.out.axis, "(", f.size,
                                     "/", f.in_stride, ",", f.out_stride, ")"));
    }
    texts.push_back(factors.empty() ? "none" : absl::StrJoin(factors, " "));
  }
  return absl::StrJoin(texts, " | ");
}

TEST(ReshapeBlocks, FlattenMultipliesAxes) {
  EXPECT_EQ(Blocks({4, 3, 2, 5}, {4, 30}),
            "0>0(4/1,1) | 1>1(3/1,10) 2>1(2/1,5) 3>1(5/1,1)");
}

TEST(ReshapeBlocks, HeadsDivideAnAxis) {
  EXPECT_EQ(Blocks({2, 7, 12}, {2, 7, 3, 4}),
            "0>0(2/1,1) | 1>1(7/1,1) | 2>2(3/4,1) 2>3(4/1,1)");
}

TEST(ReshapeBlocks, ABatchJoinsHeads) {
  EXPECT_EQ(Blocks({2, 12}, {6, 4}), "0>0(2/1,3) 1>0(3/4,1) 1>1(4/1,1)");
}

TEST(ReshapeBlocks, AxesOfOneAreInNoBlock) {
  EXPECT_EQ(Blocks({4, 6, 1, 1}, {1, 4, 6}), "0>1(4/1,1) | 1>2(6/1,1)");
  EXPECT_EQ(Blocks({1}, {1, 1}), "");
}

TEST(ReshapeBlocks, WithoutCommonFactorsThereAreNone) {
  EXPECT_EQ(Blocks({5, 4, 6, 3}, {5, 6, 4, 3}),
            "0>0(5/1,1) | none | 3>3(3/1,1)");
  EXPECT_EQ(Blocks({0, 4}, {2, 0}), "none");
}

}  // namespace
}  // namespace loadline::passes
