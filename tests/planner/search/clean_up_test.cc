// The clean-up: what it removes, what it must leave, and its floor.
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

constexpr int64_t kUnlimitedWork = int64_t{1} << 40;

constexpr Item kForward{ItemKind::kRun, 0}, kGrad{ItemKind::kRun, 1},
    kUpdate{ItemKind::kRun, 2}, kOutY{ItemKind::kOut, 2},
    kInY{ItemKind::kIn, 2};

Schedule Cleaned(const SearchModel& model, const Schedule& schedule,
                 int64_t target_bytes, double floor_ns = 0) {
  SearchState state(model, schedule, target_bytes);
  WorkBudget effort{.left = kUnlimitedWork};
  CleanUp(state, effort, floor_ns);
  return state.ToSchedule();
}

TEST(CleanUp, RemovesRerunsAndCopiesThatSaveNothing) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem);
  const Schedule useless = {{kForward, kForward, kOutY, kInY, kGrad, kUpdate},
                            {0}};
  EXPECT_EQ(Cleaned(model, useless, 1000).items, GivenOrder(model).items);
  // Not below the floor: only the copies are removed.
  const double floor_ns = 1000 + 6000;
  EXPECT_EQ(Cleaned(model, useless, 1000, floor_ns).items,
            (std::vector<Item>{kForward, kForward, kGrad, kUpdate}));
}

TEST(CleanUp, KeepsWhatTheTargetNeeds) {
  // Without the copy of y, 500 bytes are alive while node "wide" runs.
  Problem problem = SmallProblem();
  problem.values.push_back({.file_id = 5, .name = "u", .bytes = 200});
  problem.nodes.insert(problem.nodes.begin() + 1, {.file_id = 3,
                                                   .name = "wide",
                                                   .time_ns = 5000,
                                                   .inputs = {ValueId{0}},
                                                   .outputs = {ValueId{5}},
                                                   .workspace_bytes = 200});
  const SearchModel model = MakeSearchModel(problem);
  const Schedule schedule = {{{ItemKind::kRun, 0},
                              kOutY,
                              {ItemKind::kRun, 1},
                              kInY,
                              {ItemKind::kRun, 2},
                              {ItemKind::kRun, 3}},
                             {0}};
  const Lifetimes lives = FindLifetimes(model, schedule);
  ASSERT_TRUE(lives.valid);
  ASSERT_EQ(lives.peak_bytes, 500);
  EXPECT_EQ(FindLifetimes(model, GivenOrder(model)).peak_bytes, 600);
  EXPECT_EQ(Cleaned(model, schedule, 500).items, schedule.items);
  EXPECT_EQ(Cleaned(model, schedule, 600).items, GivenOrder(model).items);
}

TEST(CleanUp, RunsTheFastestVariantThatFits) {
  Problem problem = SmallProblem();
  problem.nodes[1].variants = {{"fast", 1500, 300, true}};
  SearchModelOptions options;
  const SearchModel model = MakeSearchModel(problem, options);
  const int fast = model.jobs_of[1].front();
  const Schedule slow = {{kForward, kGrad, kUpdate}, {0}};
  EXPECT_EQ(Cleaned(model, slow, 600).items[1].id, fast);
  EXPECT_EQ(Cleaned(model, slow, 500).items[1].id, 1);  // 600 bytes
  options.tuning.clean_up.faster_variants = false;
  EXPECT_EQ(Cleaned(MakeSearchModel(problem, options), slow, 600).items[1].id,
            1);
}

TEST(CleanUp, NeverLengthensTheStepOrTheExcess) {
  int shorter = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 25, seed % 2 == 0, seed % 3 != 0);
    if (seed % 4 == 0) AddRandomChoices(seed, problem);
    SearchModelOptions options;
    const SearchModel model = MakeSearchModel(problem, options);
    TestRandom random(seed);
    const Schedule schedule = RandomSchedule(model, random, 30);
    const int64_t target = FindLifetimes(model, schedule).peak_bytes *
                           (seed % 2 == 0 ? 9 : 10) / 10;
    SearchState state(model, schedule, target);
    const double step_ns = state.Makespan();
    const double peak_bytes = state.PeakBytes();
    WorkBudget effort{.left = kUnlimitedWork};
    CleanUp(state, effort);
    ASSERT_TRUE(state.valid());
    EXPECT_LE(state.Makespan(), step_ns + 1e-6);
    EXPECT_LE(state.ToSchedule().items.size(), schedule.items.size());
    if (peak_bytes <= static_cast<double>(target)) {
      EXPECT_LE(state.PeakBytes(), static_cast<double>(target));
    }
    shorter += state.Makespan() < step_ns;
    options.tuning.clean_up.enabled = false;
    EXPECT_EQ(
        Cleaned(MakeSearchModel(problem, options), schedule, target).items,
        schedule.items);
  }
  EXPECT_GT(shorter, 20);
}

}  // namespace
}  // namespace loadline::planner
