// Views share the storage of their bases.
#include "models/storage.h"

#include <gtest/gtest.h>

#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

TEST(StorageRoots, FollowsChainsOfViewsAndStopsAtCopies) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({2, 6}));
  const ValueId a = (*g.AddNode("Reshape", "a", {x}, {{"shape", Ints{12}}}))[0];
  const ValueId b =
      (*g.AddNode("Reshape", "b", {a}, {{"shape", Ints{3, 4}}}))[0];
  const ValueId t =
      (*g.AddNode("Transpose", "t", {b}, {{"perm", Ints{1, 0}}}))[0];
  const ValueId c = (*g.AddNode("Reshape", "c", {t}, {{"shape", Ints{12}}}))[0];
  const std::vector<ValueId> roots = StorageRoots(g);
  EXPECT_EQ(roots, (std::vector<ValueId>{x, x, x, t, t}));
  EXPECT_NE(roots[Index(c)], c);
  EXPECT_TRUE(IsView(g.nodes[0]));
  EXPECT_FALSE(IsView(g.nodes[2]));
}

}  // namespace
}  // namespace loadline::models
