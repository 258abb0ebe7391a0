// The epochs of first runs, against every order that a plan may have.
#include "planner/bound/bound_epochs.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Position of each node in a random order that Precedence permits.
std::vector<int> RandomPositions(const Precedence& precedence,
                                 TestRandom& random) {
  const size_t count = precedence.before().size();
  std::vector<size_t> left(count);
  std::vector<int> ready;
  for (size_t n = 0; n < count; ++n) {
    left[n] = precedence.before()[n].size();
    if (left[n] == 0) ready.push_back(static_cast<int>(n));
  }
  std::vector<int> position(count, -1);
  for (int at = 0; !ready.empty(); ++at) {
    const size_t drawn = random.In(0, static_cast<int64_t>(ready.size()) - 1);
    const int n = ready[drawn];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(drawn));
    position[n] = at;
    for (int next : precedence.after()[n]) {
      if (--left[next] == 0) ready.push_back(next);
    }
  }
  return position;
}

// Random nodes of which each is an ancestor of the next.
std::vector<int> RandomCuts(const SearchModel& model,
                            const Precedence& precedence, TestRandom& random) {
  std::vector<int> cuts;
  for (int n = 0; n < model.node_count; ++n) {
    const bool after = cuts.empty() || precedence.Ancestors(n)[cuts.back()];
    if (after && random.OneIn(2)) cuts.push_back(n);
  }
  if (cuts.empty()) cuts.push_back(0);
  return cuts;
}

TEST(CutEpochs, HoldInEveryPermittedOrder) {
  int unsettled = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = RandomProblem(seed, 15, seed % 2 == 0, false);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const Precedence precedence(model);
    TestRandom random(seed);
    const std::vector<int> cuts = RandomCuts(model, precedence, random);
    const CutEpochs epochs(model, precedence, cuts, -1);
    for (int n = 0; n < model.node_count; ++n) unsettled += !epochs.Settled(n);
    for (int order = 0; order < 20; ++order) {
      const std::vector<int> at = RandomPositions(precedence, random);
      for (int n = 0; n < model.node_count; ++n) {
        int epoch = 0;
        while (epoch < epochs.count() && at[cuts[epoch]] <= at[n]) ++epoch;
        EXPECT_GE(epoch, epochs.From(n)) << seed << " node " << n;
        EXPECT_LT(epoch, epochs.Until(n)) << seed << " node " << n;
        if (epochs.FirstCutAfter(n) <= epochs.count()) {
          EXPECT_LT(at[n], at[epochs.cut(epochs.FirstCutAfter(n))]);
        }
      }
    }
  }
  EXPECT_GT(unsettled, 100);
}

TEST(CutEpochs, AreAsNarrowAsTheGraphAllows) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const Precedence precedence(model);
  const CutEpochs epochs(model, precedence, {1, 3}, -1);
  for (int n = 0; n < 4; ++n) EXPECT_TRUE(epochs.Settled(n)) << n;
  EXPECT_EQ(epochs.From(0), 0);
  EXPECT_EQ(epochs.From(1), 1);
  EXPECT_EQ(epochs.From(2), 1);
  EXPECT_EQ(epochs.From(3), 2);
  EXPECT_TRUE(epochs.IsCut(3));
  EXPECT_FALSE(epochs.IsCut(2));
  EXPECT_EQ(epochs.FirstCutAfter(2), 2);
  EXPECT_EQ(epochs.FirstCutAfter(3), 3);
}

TEST(CutEpochs, CountOnlyWhatRunsUpToTheEndOfASpan) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const CutEpochs epochs(model, Precedence(model), {1}, 2);
  EXPECT_FALSE(epochs.to_end());
  EXPECT_TRUE(epochs.Counts(0));
  EXPECT_TRUE(epochs.Counts(2));
  EXPECT_FALSE(epochs.Counts(3));
}

}  // namespace
}  // namespace loadline::planner
