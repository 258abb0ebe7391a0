// Lifetimes, broken rules and host bytes from accesses, against FindLifetimes
// on random schedules, valid and invalid.
#include "planner/search/lifetime_rules.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// One slot per item.
struct Sums {
  Sums(const SearchModel& model, const Schedule& schedule)
      : accesses(model), rules(model), slots(schedule.items.size()) {
    memory.Reset(slots);
    memory.SetTarget(0);
    rules.Reset(schedule.host_home);
    for (int p = 0; p < slots; ++p) {
      const Item& item = schedule.items[p];
      for (const Use& use : accesses.UsesOf(item)) {
        accesses.Append(use.value, {p, p, use.flags});
      }
      rules.CountRun(item, 1);
      if (item.kind != ItemKind::kRun) continue;
      memory.Note(p, p + 1,
                  static_cast<double>(model.workspace_bytes[item.id]));
    }
    for (int v = 0; v < model.representation_count(); ++v) Apply(v, 1);
  }
  void Apply(int value, int sign) {
    rules.Apply(value, accesses.of(value), sign, slots, memory);
  }

  AccessTable accesses;
  LifetimeRules rules;
  SearchMemory memory;
  int slots;
};

TEST(LifetimeRules, AgreeWithTheSimulationOnRandomSchedules) {
  int valid = 0, invalid = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 20),
                                    seed % 3 != 0, seed % 4 != 1);
    if (seed % 2 == 0) AddRandomChoices(seed, problem);
    const SearchModel model = MakeSearchModel(problem);
    TestRandom random(seed);
    Schedule schedule = RandomSchedule(model, random, 15);
    if (seed % 2 == 0) {
      // A swap of two random items often breaks a rule.
      const int64_t last = static_cast<int64_t>(schedule.items.size()) - 1;
      std::swap(schedule.items[random.In(0, last)],
                schedule.items[random.In(0, last)]);
    }
    const Lifetimes lives = FindLifetimes(model, schedule);
    Sums sums(model, schedule);
    ASSERT_EQ(sums.rules.sums().broken == 0, lives.valid);
    (lives.valid ? valid : invalid) += 1;
    if (lives.valid) {
      EXPECT_EQ(static_cast<int64_t>(sums.memory.PeakBytes()),
                lives.peak_bytes);
    }
    int64_t host_bytes = 0;
    for (const Item& item : schedule.items) {
      if (item.kind == ItemKind::kOut) host_bytes += model.bytes[item.id];
    }
    for (size_t c = 0; c < model.chains.size(); ++c) {
      if (schedule.host_home[c] != 0) {
        host_bytes += model.bytes[model.chains[c].versions.front()];
      }
    }
    EXPECT_EQ(sums.rules.sums().host_bytes, host_bytes);

    // What is applied with sign -1 is gone.
    for (int v = 0; v < model.representation_count(); ++v) sums.Apply(v, -1);
    for (int p = 0; p < sums.slots; ++p) {
      const Item& item = schedule.items[p];
      sums.rules.CountRun(item, -1);
      if (item.kind != ItemKind::kRun) continue;
      sums.memory.Note(p, p + 1,
                       -static_cast<double>(model.workspace_bytes[item.id]));
    }
    EXPECT_EQ(sums.rules.sums().broken, model.node_count);
    EXPECT_EQ(sums.rules.sums().host_bytes, 0);
    EXPECT_EQ(sums.memory.excess_area(), 0);
  }
  EXPECT_GT(valid, 150);
  EXPECT_GT(invalid, 50);
}

}  // namespace
}  // namespace loadline::planner
