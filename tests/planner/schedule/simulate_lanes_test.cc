// Times of the three lanes by hand, and the event simulation against the pass
// over independent lanes.
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

constexpr Item kLaneForward{ItemKind::kRun, 0}, kLaneGrad{ItemKind::kRun, 1},
    kLaneUpdate{ItemKind::kRun, 2}, kLaneOutY{ItemKind::kOut, 2},
    kLaneInY{ItemKind::kIn, 2}, kLaneInW{ItemKind::kIn, 0},
    kLaneOutNewW{ItemKind::kOut, 4};

// Nodes of 1000, 2000 and 3000 ns; a copy out takes 100 + 100 ns, one back
// 100 + 50 ns.
Times TimesOf(const Problem& problem, const std::vector<Item>& items) {
  return FindTimes(MakeSearchModel(problem), {items, {0}});
}

TEST(FindTimes, ComputeWaitsForItsCopies) {
  Problem problem = SmallProblem();
  problem.machine->copy_overhead_ns = 7;
  for (double bidirectional : {1.0, 0.5}) {
    problem.machine->d2h_h2d_factor = bidirectional;
    const Times times = TimesOf(
        problem, {kLaneForward, kLaneOutY, kLaneInY, kLaneGrad, kLaneUpdate});
    // Out 1000..1200, In 1200..1350, grad waits for it.
    EXPECT_EQ(times.passed_ns,
              (std::vector<double>{1000, 1200, 1200, 3350, 6350}));
    EXPECT_EQ(times.compute_ns, 6000);
    EXPECT_EQ(times.lanes_ns, 6350);
    EXPECT_EQ(times.step_ns, 6364);  // two copies of 7 ns
  }
}

TEST(FindTimes, CoupledLanesMoveAtHalfRateTogether) {
  Problem problem = SmallProblem();
  const std::vector<Item> items = {kLaneInW,    kLaneForward, kLaneInW,
                                   kLaneOutY,   kLaneGrad,    kLaneUpdate,
                                   kLaneOutNewW};
  // The first In 0..150. Then In and Out 1150..1250 in latency, both move at
  // half rate until the In ends at 1350; the Out has 50 bytes left: 1400.
  EXPECT_EQ(TimesOf(problem, items).passed_ns,
            (std::vector<double>{0, 1150, 1150, 1400, 3400, 6400, 6600}));
  problem.machine->d2h_h2d_factor = 1;
  EXPECT_EQ(TimesOf(problem, items).passed_ns,
            (std::vector<double>{0, 1150, 1150, 1350, 3350, 6350, 6550}));
}

TEST(FindTimes, CopiesThatStopComputeRunOneAfterTheOther) {
  Problem problem = SmallProblem();
  problem.machine->copies_exclude_compute = true;
  const Times times = TimesOf(problem, {kLaneForward, kLaneInW, kLaneOutY,
                                        kLaneGrad, kLaneUpdate, kLaneOutNewW});
  EXPECT_EQ(times.passed_ns,
            (std::vector<double>{1000, 1150, 1350, 3350, 6350, 6550}));
}

TEST(FindTimes, TheEventSimulationEqualsThePassWhereLanesAreNotSlowed) {
  int with_copies = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Problem problem = RandomProblem(seed, 25, seed % 2 == 0, true);
    problem.machine->d2h_h2d_factor = 1;
    const SearchModel model = MakeSearchModel(problem);
    SearchModel events = model;
    events.bidirectional = 1 - 1e-12;
    SearchModel slowed = model;
    slowed.bidirectional = 0.5;
    TestRandom random(seed);
    const Schedule schedule = RandomSchedule(model, random, 30);
    const Times times = FindTimes(model, schedule);
    const Times same = FindTimes(events, schedule);
    ASSERT_EQ(times.passed_ns.size(), same.passed_ns.size());
    for (size_t p = 0; p < times.passed_ns.size(); ++p) {
      ASSERT_NEAR(times.passed_ns[p], same.passed_ns[p], 1e-3) << seed;
    }
    ASSERT_NEAR(times.lanes_ns, same.lanes_ns, 1e-3);
    with_copies += times.lanes_ns > static_cast<double>(times.compute_ns);
    EXPECT_GE(FindTimes(slowed, schedule).lanes_ns, times.lanes_ns - 1e-3);
  }
  EXPECT_GT(with_copies, 30);
}

}  // namespace
}  // namespace loadline::planner
