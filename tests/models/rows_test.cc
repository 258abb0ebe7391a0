// Views of a part of a tensor: which bytes they share.
#include <gtest/gtest.h>

#include "models/graph.h"
#include "models/storage.h"

namespace loadline::models {
namespace {

TEST(RowsView, SharesItsPartOfTheRootsBytes) {
  Graph g;
  const ValueId x = g.AddInput("x", {DType::kF32, {4, 64}});
  const ValueId flat =
      (*g.AddNode("Reshape", "flat", {x}, {{"shape", Ints{256}}}))[0];
  const ValueId half =
      (*g.AddNode("RowsView", "half", {flat},
                  {{"start", int64_t{128}}, {"shape", Ints{2, 64}}}))[0];
  const ValueId last =
      (*g.AddNode("RowsView", "last", {half},
                  {{"start", int64_t{64}}, {"shape", Ints{64}}}))[0];
  ASSERT_TRUE(VerifyGraph(g).ok());
  EXPECT_EQ(StorageRoots(g), std::vector<ValueId>(4, x));
  const std::vector<int64_t> offsets = StorageOffsets(g);
  EXPECT_EQ(offsets[Index(half)], 128 * 4);
  EXPECT_EQ(offsets[Index(last)], 192 * 4);
  EXPECT_EQ(offsets[Index(flat)], 0);
}

}  // namespace
}  // namespace loadline::models
