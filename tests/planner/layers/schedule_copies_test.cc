// Copies at the times at which their lanes can run them.
#include "planner/layers/schedule_copies.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/point_search.h"
#include "tests/planner/support/layered_problem.h"

namespace loadline::planner {
namespace {

// Eight nodes of 1000 ns; node 0 makes value 1 of 1000 bytes, which node 7
// reads. A copy takes 1500 ns.
Problem OneIdleValue() {
  Problem problem;
  problem.alignment_bytes = 1;
  problem.values.resize(9);
  for (int v = 0; v < 9; ++v) problem.values[v] = {.file_id = v, .bytes = 1000};
  problem.nodes.resize(8);
  for (int n = 0; n < 8; ++n) {
    problem.nodes[n] = {.file_id = n,
                        .time_ns = 1000,
                        .inputs = {ValueId{n == 7 ? 1 : 0}},
                        .outputs = {ValueId{n + 1}}};
  }
  Machine machine;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 1e9 / 1.5;
  machine.host_bytes = 1 << 20;
  problem.machine = machine;
  return problem;
}

TEST(ScheduleCopies, EndsCopiesOutAndStartsCopiesBackInTime) {
  const Problem problem = OneIdleValue();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const auto run = [](int node) { return Item{ItemKind::kRun, node}; };
  const Item out = {ItemKind::kOut, 1}, in = {ItemKind::kIn, 1};
  Schedule late = GivenOrder(model);
  // Compute waits for the copy out after node 1, and for the one back.
  late.items = {run(0), out,    run(1), run(2), run(3),
                run(4), run(5), run(6), in,     run(7)};
  EXPECT_EQ(FindTimes(model, late).step_ns, 8000 + 1500 + 1500);
  const std::optional<Schedule> timely = ScheduleCopies(model, late);
  ASSERT_TRUE(timely.has_value());
  // Out from 1000 to 2500, which node 2 passes at 3000; in from 5500 at the
  // latest, so after node 4, at 5000.
  EXPECT_EQ(timely->items,
            (std::vector<Item>{run(0), run(1), run(2), out, run(3), run(4), in,
                               run(5), run(6), run(7)}));
  EXPECT_EQ(FindTimes(model, *timely).step_ns, 8000);
}

// The same runs in the same order, valid, and hardly slower.
void ExpectScheduled(const SearchModel& model, const Schedule& schedule) {
  const std::optional<Schedule> copies_rescheduled =
      ScheduleCopies(model, schedule);
  ASSERT_TRUE(copies_rescheduled.has_value());
  EXPECT_TRUE(FindLifetimes(model, *copies_rescheduled).valid);
  std::vector<int> runs[2];
  for (const Item& item : schedule.items) {
    if (item.kind == ItemKind::kRun) runs[0].push_back(item.id);
  }
  for (const Item& item : copies_rescheduled->items) {
    if (item.kind == ItemKind::kRun) runs[1].push_back(item.id);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_LE(FindTimes(model, *copies_rescheduled).step_ns,
            1.01 * FindTimes(model, schedule).step_ns);
}

TEST(ScheduleCopies, KeepsTheRunsAndIsHardlySlower) {
  const Coarsened coarse(SmallTransformer(30));
  const std::vector<Schedule> orders = SeedOrders(coarse.few_model);
  for (int percent : {80, 60, 50}) {
    PointSearchOptions options;
    options.target_bytes =
        FindLifetimes(coarse.few_model, orders[0]).peak_bytes / 100 * percent;
    options.work = 100'000;
    const std::vector<FoundSchedule> finds =
        SearchAtPoint(coarse.few_model, orders, {}, options, {});
    ASSERT_FALSE(finds.empty()) << percent;
    const std::optional<Schedule> all =
        ExpandSchedule(coarse.all, coarse.few, coarse.shrunk,
                       MatchLayers(coarse.layers, coarse.shrunk.layers, 1),
                       finds.front().schedule);
    ASSERT_TRUE(all.has_value());
    ExpectScheduled(coarse.model, *all);
  }
}

}  // namespace
}  // namespace loadline::planner
