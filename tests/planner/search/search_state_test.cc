// The incremental search state against the simulation from scratch, and the
// simulation of the lanes against Replay, on thousands of random schedules.
#include "planner/search/search_state.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/layers/repair_order.h"
#include "planner/layout/lower_schedule.h"
#include "planner/schedule/simulate.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr Permissions kAllCodecs = {.lossy = true, .inexact = true};

void ExpectSame(const SearchModel& model, SearchState& state) {
  const Schedule schedule = state.ToSchedule();
  const Lifetimes lives = FindLifetimes(model, schedule);
  ASSERT_EQ(state.valid(), lives.valid);
  if (!lives.valid) return;
  ASSERT_EQ(static_cast<int64_t>(state.PeakBytes()), lives.peak_bytes);
  const Times times = FindTimes(model, schedule);
  ASSERT_EQ(state.compute_ns(), times.compute_ns);
  if (model.bidirectional < 1) {
    ASSERT_NEAR(state.Makespan(), times.step_ns, 1e-3);
  } else {
    ASSERT_DOUBLE_EQ(state.Makespan(), times.step_ns);
  }
}

TEST(SearchState, FollowsTheSimulationThroughRandomEdits) {
  int valid = 0, with_copies = 0, with_codecs = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 25),
                                    seed % 3 != 0, seed % 4 != 1);
    if (seed % 2 == 0) AddRandomChoices(seed, problem);
    if (problem.machine)
      problem.machine->copies_exclude_compute = seed % 5 == 2;
    if (problem.machine && seed % 3 == 0) problem.machine->copy_overhead_ns = 7;
    const SearchModel model = MakeSearchModel(problem, true, true, kAllCodecs);
    const Schedule start = GivenOrder(model);
    const int64_t peak = FindLifetimes(model, start).peak_bytes;
    SearchState state(model, start, peak / 2);

    TestRandom random(seed);
    for (int edit = 0; edit < 60; ++edit) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " edit ", edit));
      const Schedule before = state.ToSchedule();
      const double excess_area = state.excess_area();
      EditAtRandom(state, random);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(model, state));
      if (!state.valid() || random.OneIn(3)) {
        state.Undo(0);
        ASSERT_EQ(state.ToSchedule().items, before.items);
        ASSERT_EQ(state.ToSchedule().host_home, before.host_home);
        ASSERT_EQ(state.excess_area(), excess_area);
        continue;
      }
      ++valid;
      with_copies += state.copy_count() > 0;
      for (const Item& item : state.ToSchedule().items) {
        if (item.kind == ItemKind::kRun && model.jobs[item.id].node < 0) {
          ++with_codecs;
          break;
        }
      }
      state.Commit();
      if (random.OneIn(10)) state.Respread();
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(with_copies, 500);
  EXPECT_GT(with_codecs, 200);
}

// A weight that is updated at the second node, and may be kept in fewer bytes.
Problem UpdateProblem() {
  Problem problem;
  problem.alignment_bytes = 1;
  problem.values.resize(4);
  for (int v = 0; v < 4; ++v) {
    problem.values[v].file_id = v;
    problem.values[v].bytes = 100;
  }
  const ValueId x{0}, weight{1}, y{2}, next{3};
  problem.values[1].persistent = problem.values[3].persistent = true;
  problem.values[1].stash.push_back({"half", 50, 20, 30, true, 0.0});
  problem.nodes = {
      {0, "use", 100, {x, weight}, {y}, 0, true, {}, {}},
      {1, "update", 100, {y, weight}, {next}, 0, false, {{weight, next}}, {}}};
  return problem;
}

TEST(FindLifetimes, NothingBringsBackAnOldVersionAfterItsUpdate) {
  const Problem problem = UpdateProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const Coding& coding = model.codings[1].front();
  const Item encode{ItemKind::kRun, coding.encode},
      decode{ItemKind::kRun, coding.decode}, use{ItemKind::kRun, 0},
      update{ItemKind::kRun, 1};
  Schedule before = GivenOrder(model), after = before;
  before.items = {encode, use, decode, update};
  after.items = {encode, use, update, decode};
  EXPECT_TRUE(FindLifetimes(model, before).valid);
  EXPECT_FALSE(FindLifetimes(model, after).valid);
  EXPECT_FALSE(SearchState(model, after, 1000).valid());
  const std::optional<Schedule> mended = RepairOrder(model, after);
  ASSERT_TRUE(mended.has_value());
  EXPECT_EQ(mended->items, before.items);
}

TEST(FindTimes, EqualsReplayOfTheEmittedPlanAndLanesApartAreNoFaster) {
  int checked = 0, slower = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 20),
                                    seed % 3 != 0, true);
    problem.addresses = seed % 2 == 0;
    problem.machine->d2h_h2d_factor = seed % 5 == 0 ? 1.0 : 0.6;
    problem.machine->copies_exclude_compute = seed % 5 < 2;
    if (seed % 4 < 2) AddRandomChoices(seed, problem);
    const SearchModel model = MakeSearchModel(problem, true, true, kAllCodecs);
    const SearchModel apart = WithApartLanes(model);
    const Schedule start = GivenOrder(model);
    SearchState state(model, start, FindLifetimes(model, start).peak_bytes / 2);

    TestRandom random(seed * 77);
    for (int edit = 0; edit < 40; ++edit) {
      EditAtRandom(state, random);
      if (!state.valid()) {
        state.Undo(0);
        continue;
      }
      state.Commit();

      const Schedule schedule = state.ToSchedule();
      LowerScheduleOptions options;
      options.budget_bytes = INT64_MAX / 4;
      const absl::StatusOr<Plan> plan = LowerSchedule(model, schedule, options);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const absl::StatusOr<Prediction> replay = Replay(problem, *plan);
      ASSERT_TRUE(replay.ok()) << replay.status();
      const double step_ns = FindTimes(model, schedule).step_ns;
      ASSERT_NEAR(static_cast<double>(replay->step_ns), step_ns,
                  1 + 1e-6 * step_ns)
          << "seed " << seed << " edit " << edit;
      ASSERT_LE(replay->peak_bytes, FindLifetimes(model, schedule).peak_bytes);
      const double apart_ns = FindTimes(apart, schedule).step_ns;
      ASSERT_GE(apart_ns, step_ns * (1 - 1e-9));
      slower += apart_ns > step_ns + 1;
      ++checked;
    }
  }
  EXPECT_GT(checked, 1500);
  EXPECT_GT(slower, 100);
}

}  // namespace
}  // namespace loadline::planner
