// The order of first runs, and which cuts are worth a program.
#include "planner/bound/bound_cuts.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound_costs.h"
#include "tests/planner/bound/program_parts.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

TEST(Precedence, HasProducersBeforeReadersTransitively) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const Precedence precedence(model);
  EXPECT_EQ(precedence.Ancestors(3), std::vector<char>({1, 1, 1, 0}));
  EXPECT_EQ(precedence.Descendants(0), std::vector<char>({0, 1, 1, 1}));
}

TEST(Precedence, HasReadersBeforeTheUpdateOnlyWhereOneInstanceIsPossible) {
  Problem problem = WeightProblem();
  problem.nodes[0].outputs.clear();  // F leads to U through w alone
  problem.nodes[1].inputs = {ValueId{1}};
  problem.nodes[1].outputs = {ValueId{2}, ValueId{3}};
  problem.addresses = true;
  problem.values[0].offload = problem.values[4].offload = false;
  const auto f_before_u = [&] {
    return Precedence(MakeSearchModel(problem, true, true)).Ancestors(2)[0];
  };
  EXPECT_TRUE(f_before_u());
  problem.values[0].offload = true;
  EXPECT_FALSE(f_before_u());
  problem.values[0].offload = false;
  problem.values[0].stash = {{"half", 5, 1, 1, true, 0}};
  EXPECT_FALSE(f_before_u());
  problem.values[0].stash.clear();
  problem.addresses = false;
  EXPECT_FALSE(f_before_u());
}

// w, w', w'' at one address: only w is surely gone in the end, and only once
// w'' is made.
TEST(Overwriter, IsTheNodeOfTheLastVersionForTheFirst) {
  Problem problem = WeightProblem();
  problem.addresses = true;
  Value last = problem.values[4];
  last.file_id = 5;
  last.name = "w''";
  problem.values.push_back(last);
  for (Value& value : problem.values) value.offload = false;
  const ValueId g{3}, w2{4}, w3{5};
  problem.nodes.push_back(
      {3, "V", 11, {g, w2}, {w3}, 0, false, {{w2, w3}}, {}});
  ASSERT_EQ(ValidateProblem(problem), absl::OkStatus());
  const SearchModel model = MakeSearchModel(problem, true, true);
  EXPECT_EQ(Overwriter(model, 0), 3);
  EXPECT_EQ(Overwriter(model, 4), -1);
  EXPECT_EQ(Overwriter(model, 5), -1);
  EXPECT_EQ(Overwriter(model, 2), -1);
  // F reads w: before V, but not before U.
  problem.nodes[1].inputs = {ValueId{1}};
  const Precedence precedence(MakeSearchModel(problem, true, true));
  EXPECT_TRUE(precedence.Ancestors(3)[0]);
  EXPECT_FALSE(precedence.Ancestors(2)[0]);
}

std::vector<Cut> Cuts(const SearchModel& model, int64_t budget_bytes,
                      int most) {
  return FindCuts(model, Precedence(model), FindLeastCosts(model).node_ns,
                  budget_bytes, most);
}

TEST(FindCuts, RanksTheCutWhereMemoryIsShort) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const std::vector<Cut> cuts = Cuts(model, 25, 100);
  ASSERT_EQ(cuts.size(), 4u);
  // At C all of a, b and c: 5 bytes too many, half of a, which A makes in 5 ns.
  EXPECT_EQ(cuts[0].node, 2);
  EXPECT_EQ(cuts[0].excess_bytes, 5);
  EXPECT_EQ(cuts[0].price_ns, 2.5);
  EXPECT_EQ(cuts[0].proven_ns, 2.5);
}

TEST(FindCuts, ProvesNothingByRankingWhereThereAreOtherMeans) {
  const Problem problem = LineProblemWithCopies();
  const SearchModel model = MakeSearchModel(problem, true, true);
  for (const Cut& cut : Cuts(model, 25, 100)) EXPECT_EQ(cut.proven_ns, 0);
}

TEST(FindCuts, LooksAroundTheBestOfAnEvenSpread) {
  const Problem problem = RandomProblem(5, 600, true, false);
  const SearchModel model = MakeSearchModel(problem, true, true);
  const std::vector<Cut> all = Cuts(model, 0, model.node_count);
  EXPECT_EQ(all.size(), static_cast<size_t>(model.node_count));
  const std::vector<Cut> some = Cuts(model, 0, 50);
  EXPECT_LE(some.size(), 50u + 65u);
  EXPECT_GT(some.size(), 80u);
  std::set<int> nodes;
  for (const Cut& cut : some) {
    EXPECT_TRUE(nodes.insert(cut.node).second) << cut.node;
    const auto same =
        std::find_if(all.begin(), all.end(),
                     [&](const Cut& other) { return other.node == cut.node; });
    ASSERT_NE(same, all.end());
    EXPECT_EQ(same->excess_bytes, cut.excess_bytes);
    EXPECT_EQ(same->price_ns, cut.price_ns);
  }
  EXPECT_TRUE(std::is_sorted(
      some.begin(), some.end(),
      [](const Cut& a, const Cut& b) { return a.price_ns > b.price_ns; }));
}

}  // namespace
}  // namespace loadline::planner
