// What spare bytes make needless, on a schedule small enough to time by hand.
#include "planner/solve/drop_redundant_transfers.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"

namespace loadline::planner {
namespace {

// Four nodes make values 1 to 4 of the input 0, then one reads value 2 and the
// last reads value 1. Each takes 1000 ns and makes 1000 bytes; a copy takes
// 500 ns.
Problem TwoIdleValues() {
  Problem problem;
  problem.alignment_bytes = 1;
  problem.values.resize(7);
  for (int v = 0; v < 7; ++v) {
    problem.values[v] = {.file_id = v, .bytes = 1000};
  }
  problem.nodes.resize(6);
  for (int n = 0; n < 6; ++n) {
    const ValueId input{n < 4 ? 0 : 6 - n};
    problem.nodes[n] = {.file_id = n,
                        .time_ns = 1000,
                        .inputs = {input},
                        .outputs = {ValueId{n + 1}}};
  }
  Machine machine;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 2e9;
  machine.host_bytes = 1 << 20;
  problem.machine = machine;
  return problem;
}

LaidOutSchedule PlaceIt(const SearchModel& model, const Schedule& schedule) {
  const double step_ns = FindTimes(model, schedule).step_ns;
  return *LayOutTightest(model, schedule, step_ns, 1000);
}

int Copies(const Schedule& schedule) {
  int copies = 0;
  for (const Item& item : schedule.items) {
    copies += item.kind != ItemKind::kRun;
  }
  return copies;
}

// Both copies out hide behind a run; so does the copy back of value 1, but the
// one of value 2 starts too late by the 500 ns that it takes.
Schedule OneHidesOneStalls(const SearchModel& model) {
  const auto run = [](int node) { return Item{ItemKind::kRun, node}; };
  Schedule schedule = GivenOrder(model);
  schedule.items = {run(0),
                    run(1),
                    {ItemKind::kOut, 1},
                    run(2),
                    {ItemKind::kOut, 2},
                    run(3),
                    {ItemKind::kIn, 2},
                    {ItemKind::kIn, 1},
                    run(4),
                    run(5)};
  return schedule;
}

TEST(DropRedundantTransfers, TakesOutCopiesThatHideAlthoughOthersStallTheStep) {
  const Problem problem = TwoIdleValues();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const LaidOutSchedule placed = PlaceIt(model, OneHidesOneStalls(model));
  ASSERT_EQ(placed.step_ns, 6500);
  WorkBudget effort;
  effort.left = 10'000;
  const std::optional<LaidOutSchedule> relaxed =
      DropRedundantTransfers(model, placed, 8000, placed.step_ns, effort);
  ASSERT_TRUE(relaxed.has_value());
  EXPECT_EQ(Copies(relaxed->schedule), 2);  // those of value 2
  EXPECT_EQ(FindTimes(model, relaxed->schedule).step_ns, 6500);
  EXPECT_LE(relaxed->arena_bytes, 8000);
}

TEST(DropRedundantTransfers, KeepsTheCopiesThatTheFloorNeeds) {
  Problem problem = TwoIdleValues();
  problem.machine->copy_overhead_ns = 10;
  const SearchModel model = MakeSearchModel(problem, true, true);
  const LaidOutSchedule placed = PlaceIt(model, OneHidesOneStalls(model));
  ASSERT_EQ(placed.step_ns, 6540);
  WorkBudget effort;
  effort.left = 10'000;
  // Two copies go, but not all four: 6000 ns would be below the floor.
  for (double floor_ns : {6500.0, 6520.0}) {
    const std::optional<LaidOutSchedule> fewer =
        DropRedundantTransfers(model, placed, 8000, floor_ns, effort);
    ASSERT_TRUE(fewer.has_value()) << floor_ns;
    EXPECT_EQ(Copies(fewer->schedule), 2) << floor_ns;
    EXPECT_EQ(fewer->step_ns, 6520) << floor_ns;
  }
  EXPECT_FALSE(
      DropRedundantTransfers(model, placed, 8000, 6521, effort).has_value());
}

}  // namespace
}  // namespace loadline::planner
