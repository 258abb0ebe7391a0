// Where a persistent value may be, and what each place needs.
#include "planner/bound/bound_chains.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

// The weight of WeightProblem with a cut at G, which does not read it: F has
// read w before, U will update it later.
class WeightAtG : public ::testing::Test {
 protected:
  WeightAtG()
      : problem_(WeightProblem()),
        model_(MakeSearchModel(problem_, true, true)),
        parts_(model_, {.cuts = {1}, .horizon_ns = 1000}),
        w_(parts_.chains.chains()[0]) {}

  bool Possible(const std::vector<std::pair<int, double>>& fixed) {
    return parts_.LeastCost(fixed).has_value();
  }

  const Problem problem_;
  const SearchModel model_;
  ProgramParts parts_;
  const ChainColumn& w_;
};

TEST_F(WeightAtG, StaysOnTheDeviceWithoutCopies) {
  EXPECT_TRUE(Possible({{w_.home_host, 0},
                        {w_.keep[1], 1},
                        {w_.out[1], 0},
                        {w_.out[2], 0},
                        {w_.in[0], 0},
                        {w_.in[1], 0}}));
}

TEST_F(WeightAtG, LeavesTheDeviceOnlyByACopyOut) {
  EXPECT_FALSE(Possible({{w_.home_host, 0}, {w_.keep[1], 0}, {w_.out[1], 0}}));
  EXPECT_TRUE(Possible({{w_.home_host, 0}, {w_.keep[1], 0}, {w_.out[1], 1}}));
}

TEST_F(WeightAtG, ComesBackForItsUpdate) {
  EXPECT_FALSE(Possible({{w_.keep[1], 0}, {w_.in[1], 0}}));
  EXPECT_TRUE(Possible({{w_.keep[1], 1}, {w_.in[1], 0}}));
}

TEST_F(WeightAtG, OnTheHostIsCopiedInForFAndGoesHomeUpdated) {
  EXPECT_FALSE(Possible({{w_.home_host, 1}, {w_.in[0], 0}}));
  EXPECT_FALSE(Possible({{w_.home_host, 1}, {w_.out[2], 0}}));
  EXPECT_TRUE(Possible({{w_.home_host, 1},
                        {w_.in[0], 1},
                        {w_.keep[1], 1},
                        {w_.out[1], 0},
                        {w_.out[2], 1}}));
}

TEST(ChainColumns, AtACutThatReadsThemAreThere) {
  const Problem problem = WeightProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .horizon_ns = 1000});
  const ChainColumn& w = parts.chains.chains()[0];
  EXPECT_FALSE(parts.LeastCost({{w.keep[1], 0}}).has_value());
}

TEST(ChainColumns, HaveNoneWhereTheValueCannotLeave) {
  Problem problem = WeightProblem();
  problem.values[0].offload = problem.values[4].offload = false;
  const SearchModel model = MakeSearchModel(problem, true, true);
  const ProgramParts parts(model, {.cuts = {1}});
  EXPECT_TRUE(parts.chains.chains()[0].fixed);
  EXPECT_EQ(parts.chains.chains()[0].home_host, -1);
  EXPECT_EQ(parts.chains.LastUpdater(0), 2);
  EXPECT_EQ(parts.chains.Readers(0), std::vector<int>({0, 2}));
}

TEST(ChainColumns, ForbidRerunsThatReadAnOverwrittenVersion) {
  Problem problem = WeightProblem();
  problem.values[0].offload = problem.values[4].offload = false;
  problem.addresses = true;
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts before(model, {.cuts = {1}});
  EXPECT_TRUE(
      before.LeastCost({{before.values.reruns().at({1, 0}), 1}}).has_value());
  ProgramParts after(model, {.cuts = {2}});
  EXPECT_FALSE(
      after.LeastCost({{after.values.reruns().at({1, 0}), 1}}).has_value());
}

}  // namespace
}  // namespace loadline::planner
