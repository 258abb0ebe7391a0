// Lifetimes, broken rules and host bytes from accesses, against FindLifetimes
// on random schedules, valid and invalid.
#include "planner/search/lifetime_rules.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/tiny_problem.h"

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
    if (rules.Leads(value)) rules.Apply(value, accesses, sign, slots, memory);
  }

  AccessTable accesses;
  LifetimeRules rules;
  SearchMemory memory;
  int slots;
};

struct Counts {
  int valid = 0, invalid = 0, plain = 0;
};

// A plain extent says all that Apply does.
void ComparePlainExtents(const SearchModel& model, const Schedule& schedule,
                         Counts& counts) {
  Sums sums(model, schedule);
  for (int v = 0; v < model.representation_count(); ++v) {
    const auto extent = sums.rules.PlainExtent(v, sums.accesses, sums.slots);
    if (!extent) continue;
    ++counts.plain;
    const LifetimeRules::Sums before = sums.rules.sums();
    for (int sign : {1, -1}) {
      SearchMemory memory;
      memory.Reset(sums.slots);
      memory.SetTarget(0);
      sums.rules.Apply(v, sums.accesses, sign, sums.slots, memory);
      sums.rules.Note(v, *extent, -sign, memory);
      EXPECT_EQ(memory.excess_area(), 0) << v;
      EXPECT_EQ(sums.rules.sums().broken, before.broken) << v;
      EXPECT_EQ(sums.rules.sums().host_bytes, before.host_bytes) << v;
    }
  }
}

void Compare(const Problem& problem, uint64_t seed, Counts& counts) {
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
  (lives.valid ? counts.valid : counts.invalid) += 1;
  if (lives.valid) {
    EXPECT_EQ(static_cast<int64_t>(sums.memory.PeakBytes()), lives.peak_bytes);
  }
  int64_t host_bytes = 0;
  for (const Item& item : schedule.items) {
    if (item.kind != ItemKind::kOut) continue;
    const int chain = model.chain_of[item.id];
    const bool home = chain >= 0 && schedule.host_home[chain] != 0 &&
                      item.id == model.chains[chain].versions.back();
    if (!home) host_bytes += model.bytes[item.id];
  }
  for (size_t c = 0; c < model.chains.size(); ++c) {
    if (schedule.host_home[c] != 0) {
      host_bytes += model.bytes[model.chains[c].versions.front()];
    }
  }
  EXPECT_EQ(sums.rules.sums().host_bytes, host_bytes);

  ComparePlainExtents(model, schedule, counts);

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

TEST(LifetimeRules, AgreeWithTheSimulationOnRandomSchedules) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 20),
                                    seed % 3 != 0, seed % 4 != 1);
    if (seed % 2 == 0) AddRandomChoices(seed, problem);
    Compare(problem, seed, counts);
  }
  EXPECT_GT(counts.valid, 150);
  EXPECT_GT(counts.invalid, 50);
  EXPECT_GT(counts.plain, 1000);
}

TEST(LifetimeRules, AgreeWithTheSimulationOnSeveralVersions) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = TinyProblem(
        seed,
        {.codecs = seed % 8 < 2, .copies = seed % 8 < 4, .versions = true});
    problem.addresses = seed % 3 != 0;
    Compare(problem, seed, counts);
  }
  EXPECT_GT(counts.valid, 500);
  EXPECT_GT(counts.invalid, 150);
  EXPECT_GT(counts.plain, 500);
}

TEST(LifetimeRules, NoteTheChangeOfAnExtent) {
  const Problem problem = RandomProblem(1, 5, false, false);
  const SearchModel model = MakeSearchModel(problem);
  const LifetimeRules rules(model);
  int value = 0;
  while (model.bytes[value] == 0) ++value;
  TestRandom random(1);
  for (int i = 0; i < 500; ++i) {
    const auto draw = [&] {
      const int lower = static_cast<int>(random.In(0, 99));
      return LifetimeRules::Extent{lower,
                                   static_cast<int>(random.In(lower, 100))};
    };
    const LifetimeRules::Extent before = draw(), after = draw();
    SearchMemory memory;
    memory.Reset(100);
    memory.SetTarget(0);
    rules.Note(value, before, 1, memory);
    rules.NoteChange(value, before, after, memory);
    memory.Commit();
    for (int s = 0; s < 100; ++s) {
      const bool inside = after.lower <= s && s < after.upper;
      ASSERT_EQ(memory.at(s), inside ? model.bytes[value] : 0) << s;
    }
  }
}

}  // namespace
}  // namespace loadline::planner
