// What the search reads of a problem: charged bytes, jobs, codings, chains and
// copies.
#include "planner/schedule/search_model.h"

#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

TEST(MakeSearchModel, RoundsBytesUpOnlyWhereAddressesMatter) {
  Problem problem = SmallProblem();
  problem.values[1].bytes = 150;
  SearchModel model = MakeSearchModel(problem);
  EXPECT_EQ(model.bytes[1], 200);
  EXPECT_EQ(model.raw_bytes[1], 150);
  EXPECT_EQ(model.workspace_bytes[1], 100);
  EXPECT_EQ(model.raw_workspace_bytes[1], 10);
  problem.addresses = false;
  model = MakeSearchModel(problem);
  EXPECT_EQ(model.bytes[1], 150);
  EXPECT_EQ(model.workspace_bytes[1], 10);
}

TEST(MakeSearchModel, KeepsTheVariantsThatSomePlanMayWantFastestFirst) {
  Problem problem = SmallProblem();
  problem.nodes[1].workspace_bytes = 300;
  problem.nodes[1].variants = {
      {"slow and small", 2500, 100, true},
      {"slow and large", 2600, 400, true},  // never better than the node
      {"fast and inexact", 1000, 900, false},
      {"fast", 1500, 800, true}};
  const SearchModel model = MakeSearchModel(problem);
  ASSERT_EQ(model.jobs_of[1].size(), 3u);
  const int64_t times_ns[] = {1500, 2000, 2500};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(model.node_ns[model.jobs_of[1][i]], times_ns[i]);
    EXPECT_EQ(model.jobs[model.jobs_of[1][i]].node, 1);
  }
  EXPECT_EQ(model.compute_ns, 1000 + 1500 + 3000);
  EXPECT_EQ(MakeSearchModel(problem, {.permissions = Permissions::None()})
                .jobs_of[1]
                .size(),
            1u);
  const SearchModel inexact =
      MakeSearchModel(problem, {.permissions = {.inexact = true}});
  EXPECT_EQ(inexact.node_ns[inexact.jobs_of[1].front()], 1000);
}

TEST(MakeSearchModel, KeepsTheCodecsThatSaveBytesAndArePermitted) {
  Problem problem = SmallProblem();
  problem.values[3].stash = {{"larger", 120, 1, 1, true, 0.0},
                             {"lossy", 10, 1, 1, false, 0.1}};
  const SearchModel model = MakeSearchModel(problem);
  ASSERT_EQ(model.codings[2].size(), 0u);  // 50 bytes are charged as 100
  problem.alignment_bytes = 1;
  const SearchModel fine = MakeSearchModel(problem);
  ASSERT_EQ(fine.codings[2].size(), 1u);
  const Coding& half = fine.codings[2].front();
  EXPECT_EQ(fine.bytes[half.encoded], 50);
  EXPECT_EQ(fine.node_ns[half.encode], 7);
  EXPECT_EQ(fine.node_ns[half.decode], 9);
  EXPECT_EQ(fine.reads[half.decode], std::vector<int>{half.encoded});
  EXPECT_EQ(fine.makes[half.decode], std::vector<int>{2});
  EXPECT_TRUE(fine.codings[3].empty());
  EXPECT_EQ(MakeSearchModel(problem, {.permissions = {.lossy = true}})
                .codings[3]
                .size(),
            1u);
}

TEST(MakeSearchModel, KnowsChainsCopiesAndTuning) {
  const Problem problem = SmallProblem();
  SearchModelOptions options;
  options.tuning.window.most_items = 5;
  const SearchModel model = MakeSearchModel(problem, options);
  EXPECT_EQ(model.tuning.window.most_items, 5);
  ASSERT_EQ(model.chains.size(), 1u);
  EXPECT_EQ(model.chains[0].versions, (std::vector<int>{0, 4}));
  EXPECT_TRUE(model.chains[0].can_host);
  EXPECT_EQ(model.Updater(0), 2);
  EXPECT_EQ(model.out_ns[2], 200);
  EXPECT_EQ(model.in_ns[2], 150);
  EXPECT_EQ(model.may_rerun[0], 1);
  EXPECT_EQ(model.may_rerun[2], 0);
  const SearchModel none = MakeSearchModel(
      problem, {.allow_recompute = false, .allow_offload = false});
  EXPECT_EQ(none.may_copy[2], 0);
  EXPECT_EQ(none.may_rerun[0], 0);
  EXPECT_EQ(none.d2h_bytes_per_ns, 0);
  EXPECT_FALSE(none.chains[0].can_host);
  // Lanes that are always as slow as both together.
  const SearchModel apart = WithApartLanes(model);
  EXPECT_EQ(apart.bidirectional, 1);
  EXPECT_EQ(apart.out_ns[2], 300);
  EXPECT_EQ(apart.in_ns[2], 200);
}

TEST(MakeSearchModel, AnInputAndAnOutputShareBytesAtMostOnce) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Problem problem = RandomProblem(seed, 30, true, true);
    const SearchModel model = MakeSearchModel(problem);
    for (int job = 0; job < model.node_count; ++job) {
      std::set<int> inputs, outputs;
      for (const auto& [in, out] : model.overwrites[job]) {
        EXPECT_TRUE(inputs.insert(in).second);
        EXPECT_TRUE(outputs.insert(out).second);
        EXPECT_TRUE(model.Overwrites(job, in));
        // Outputs of the step and persistent values keep their bytes, except
        // for an update's own version.
        if (model.Updater(in) == job) continue;
        EXPECT_FALSE(model.is_output[in]);
        EXPECT_LT(model.chain_of[in], 0);
      }
    }
  }
}

}  // namespace
}  // namespace loadline::planner
