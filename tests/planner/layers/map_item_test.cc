// Items in other models: variants and codecs have other ids there.
#include "planner/layers/map_item.h"

#include "gtest/gtest.h"
#include "planner/problem/problem.h"

namespace loadline::planner {
namespace {

// Nodes 0 and 1 with a variant each, the inexact one of node 0 first; values 1
// and 2 with a codec each.
Problem TwoOfEach() {
  Problem problem;
  problem.alignment_bytes = 1;
  for (int v = 0; v < 3; ++v) {
    problem.values.push_back({.file_id = v, .bytes = 100});
  }
  for (int v : {1, 2}) {
    problem.values[v].stash = {
        {.name = "half", .bytes = 50, .encode_ns = 1, .decode_ns = 1}};
  }
  for (int n = 0; n < 2; ++n) {
    problem.nodes.push_back({.file_id = n,
                             .time_ns = 1000,
                             .inputs = {ValueId{n}},
                             .outputs = {ValueId{n + 1}},
                             .workspace_bytes = 10});
    problem.nodes[n].variants = {
        {.name = "fast", .time_ns = 500, .workspace_bytes = 50}};
  }
  problem.nodes[0].variants.insert(
      problem.nodes[0].variants.begin(),
      {.name = "rough", .time_ns = 100, .workspace_bytes = 90, .exact = false});
  problem.outputs = {ValueId{2}};
  return problem;
}

class MapItemTest : public testing::Test {
 protected:
  Item RunOf(int job) const { return {ItemKind::kRun, job}; }

  const Problem problem_ = TwoOfEach();
  // The inexact variant's job comes before the others here only.
  const SearchModel from_ =
      MakeSearchModel(problem_, true, true, {.inexact = true});
  const SearchModel to_ = MakeSearchModel(problem_, true, true);
  const SearchModel plain_ =
      MakeSearchModel(problem_, true, true, Permissions::None());
};

TEST_F(MapItemTest, KeepsTheNodeItself) {
  EXPECT_EQ(MapItem(from_, RunOf(0), to_, {.node = 1}), RunOf(1));
  EXPECT_EQ(MapItem(from_, RunOf(0), to_, {.node = -1}).id, -1);
}

TEST_F(MapItemTest, FindsTheSameCodecOfAnotherValue) {
  for (bool decodes : {false, true}) {
    const Coding& one = from_.codings[1][0];
    const Coding& two = to_.codings[2][0];
    const Item item = RunOf(decodes ? one.decode : one.encode);
    const Subject subject = SubjectOf(from_, item);
    EXPECT_EQ(subject.node, -1);
    EXPECT_EQ(subject.value, 1);
    EXPECT_EQ(MapItem(from_, item, to_, {.value = 2}),
              RunOf(decodes ? two.decode : two.encode));
    EXPECT_EQ(MapItem(from_, item, plain_, {.value = 2}).id, -1);
  }
}

TEST_F(MapItemTest, CopiesTheSameFormOfAnotherValue) {
  for (ItemKind kind : {ItemKind::kOut, ItemKind::kIn}) {
    EXPECT_EQ(MapItem(from_, {kind, 1}, to_, {.value = 2}), (Item{kind, 2}));
    const Item encoded = {kind, from_.codings[1][0].encoded};
    EXPECT_EQ(SubjectOf(from_, encoded).value, 1);
    EXPECT_EQ(MapItem(from_, encoded, to_, {.value = 2}),
              (Item{kind, to_.codings[2][0].encoded}));
    EXPECT_EQ(MapItem(from_, encoded, plain_, {.value = 2}).id, -1);
  }
}

TEST_F(MapItemTest, FindsTheSameVariantOfAnotherNode) {
  int mapped = 0;
  for (int job : to_.jobs_of[0]) {
    if (to_.jobs[job].variant < 0) continue;
    ++mapped;
    EXPECT_EQ(SubjectOf(to_, RunOf(job)).node, 0);
    const Item same = MapItem(to_, RunOf(job), to_, {.node = 1});
    ASSERT_GE(same.id, 0);
    EXPECT_EQ(to_.jobs[same.id].node, 1);
    EXPECT_EQ(to_.jobs[same.id].variant, to_.jobs[job].variant);
    EXPECT_EQ(MapItem(to_, RunOf(job), plain_, {.node = 1}).id, -1);
  }
  EXPECT_EQ(mapped, 1);
}

}  // namespace
}  // namespace loadline::planner
