// Windows solved exactly: against every sequence of steps on small problems,
// a case that no single exchange improves, and what must hold on any problem.
#include "planner/search/window.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPlentyOfWork = int64_t{1} << 40;

WorkBudget EffortOf(int64_t work) {
  WorkBudget effort;
  effort.left = work;
  return effort;
}

bool IsCodec(const SearchModel& model, const Item& item) {
  return item.kind == ItemKind::kRun && model.jobs[item.id].node < 0;
}

// The schedule without anything optional; `count` of those are no encodes nor
// copies of what lives on the host.
Schedule Bare(const SearchModel& model, const Schedule& schedule, int* count) {
  Schedule bare = schedule;
  bare.items.clear();
  *count = 0;
  std::vector<char> ran(model.node_count, 0);
  for (const Item& item : schedule.items) {
    if (item.kind == ItemKind::kIn) {
      const int chain = model.chain_of[item.id];
      *count += chain < 0 || !schedule.host_home[chain];
    }
    if (IsCodec(model, item)) *count += model.jobs[item.id].decodes;
    if (item.kind != ItemKind::kRun || IsCodec(model, item)) continue;
    char& again = ran[model.jobs[item.id].node];
    if (!again) bare.items.push_back(item);
    *count += again;
    again = 1;
  }
  for (char& host : bare.host_home) {
    *count += host;
    host = 0;
  }
  return bare;
}

// Tries every sequence of steps, none left out.
class EverySequence {
 public:
  EverySequence(const SearchModel& model, int64_t target_bytes, int most_steps)
      : model_(model), target_bytes_(target_bytes), most_steps_(most_steps) {}

  double Fastest(const Schedule& bare) {
    Try(bare, 0);
    return fastest_ns_;
  }
  bool gave_up() const { return tried_ > 1'500; }

 private:
  void Try(const Schedule& schedule, int steps) {
    SearchState state(model_, schedule, target_bytes_);
    const double excess_area = state.excess_area();
    if (excess_area <= 0) {
      fastest_ns_ = std::min(fastest_ns_, state.Makespan());
      return;
    }
    if (steps == most_steps_) return;
    const int slot = state.PeakSlot();
    for (int v = 0; v < model_.value_count; ++v) {
      Gap gap;
      if (model_.bytes[v] == 0 || !FindGap(state, v, slot, &gap)) continue;
      const int ways = 6 + static_cast<int>(model_.codings[v].size());
      for (int way = 0; way < ways && !gave_up(); ++way) {
        if (Free(state, gap, slot, way) && state.valid() &&
            state.excess_area() < excess_area) {
          ++tried_;
          Try(state.ToSchedule(), steps + 1);
        }
        state.Load(schedule);
      }
    }
  }

  const SearchTuning::Window& Tuning() const { return model_.tuning.window; }

  bool Free(SearchState& state, const Gap& gap, int slot, int way) const {
    const int chain = model_.chain_of[gap.value];
    if (way < 3) {
      return EditRecompute(state, gap,
                           {.items = way == 0 ? 1 : Tuning().chain_limit,
                            .copies = way == 2 ? ~0u : 0});
    }
    if (way >= 6) return EditStash(state, gap, way - 6, false);
    if (!model_.may_copy[gap.value]) return false;
    const bool to_out =
        gap.to_item >= 0 && state.item(gap.to_item).kind == ItemKind::kOut;
    const bool from_in =
        gap.from_item >= 0 && state.item(gap.from_item).kind == ItemKind::kIn;
    if (way < 5) {
      if (to_out || from_in) return false;
      if (!state.OnHost(gap.value, slot) && state.OutItem(gap.value) >= 0) {
        return false;
      }
      return EditCopy(state, gap, slot, Tuning().leads[way - 3]);
    }
    if (chain < 0 || (gap.from_item >= 0 && gap.to_item >= 0)) return false;
    return state.OutItem(model_.chains[chain].versions.front()) < 0 &&
           EditHome(state, chain, slot, Tuning().leads[0]);
  }

  const SearchModel& model_;
  const int64_t target_bytes_;
  const int most_steps_;
  int64_t tried_ = 0;
  double fastest_ns_ = std::numeric_limits<double>::infinity();
};

// Greedily brought below so many percent of its peak, as far as that goes.
std::unique_ptr<SearchState> LoweredGreedily(const SearchModel& model,
                                             int percent) {
  const Schedule start = GivenOrder(model);
  auto lowered = std::make_unique<SearchState>(
      model, start, FindLifetimes(model, start).peak_bytes * percent / 100);
  SearchState& state = *lowered;
  WorkBudget effort = EffortOf(kPlentyOfWork);
  LowerPeak(state, {.lane_price = 0.3}, effort);
  state.Respread();
  return lowered;
}

TEST(ImproveWindows, AWindowOverAllEqualsEverySequenceOfSteps) {
  int checked = 0, improved = 0, with_copies = 0, with_codecs = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Problem problem = RandomProblem(seed, 6 + static_cast<int>(seed % 8),
                                    seed % 4 == 0, seed % 3 != 0);
    if (seed % 5 == 0) AddRandomChoices(seed, problem);
    if (problem.machine) problem.machine->d2h_h2d_factor = 1;
    SearchModelOptions one_window;
    one_window.tuning.window.least_items = 1000;
    one_window.tuning.window.most_items = 1000;
    const SearchModel model = MakeSearchModel(problem, one_window);
    const std::unique_ptr<SearchState> lowered =
        LoweredGreedily(model, 60 + static_cast<int>(seed % 4) * 10);
    SearchState& state = *lowered;
    if (state.excess_area() > 0) continue;
    const Schedule old = state.ToSchedule();
    const double old_ns = state.Makespan();
    int count = 0;
    const Schedule bare = Bare(model, old, &count);
    if (count == 0 || count > 4) continue;
    EverySequence every(model, static_cast<int64_t>(state.target()),
                        count + model.tuning.window.spare_steps);
    const double fastest_ns = std::min(old_ns, every.Fastest(bare));
    if (every.gave_up()) continue;

    WorkBudget effort = EffortOf(kPlentyOfWork);
    const WindowReport report =
        ImproveWindows(state, {.window_work = kPlentyOfWork}, effort);
    EXPECT_EQ(report.finished, report.searched);
    EXPECT_GE(state.Makespan(), fastest_ns - 1e-6);
    if (old_ns > static_cast<double>(model.compute_ns)) {
      EXPECT_LE(state.Makespan(), fastest_ns + 1);
      ++checked;
      improved += fastest_ns < old_ns - 1;
      with_copies += state.copy_count() > 0;
      with_codecs +=
          std::any_of(old.items.begin(), old.items.end(),
                      [&](const Item& item) { return IsCodec(model, item); });
    }
  }
  EXPECT_GT(checked, 10);
  EXPECT_GT(improved, 3);
  EXPECT_GT(with_copies, 3);
  EXPECT_GT(with_codecs, 0);
}

// Of the input 0 nodes 0 to 2 make A (value 1: 1000 bytes, 1500 ns), B and C
// (500 bytes, 500 ns each); node 3 reads them. Then node 4 is the highest
// point, and B, C, A are read once more after it.
Problem OneLargeOrTwoSmall() {
  Problem problem;
  problem.alignment_bytes = 1;
  const int64_t bytes[] = {1000, 1000, 500, 500, 0, 1000, 0, 0, 0};
  for (int v = 0; v < 9; ++v) {
    problem.values.push_back({.file_id = v, .bytes = bytes[v]});
  }
  const int64_t times_ns[] = {1500, 500, 500, 1000, 1000, 1000, 1000, 1000};
  const std::vector<ValueId> inputs[] = {
      {ValueId{0}}, {ValueId{0}},
      {ValueId{0}}, {ValueId{1}, ValueId{2}, ValueId{3}},
      {ValueId{4}}, {ValueId{2}},
      {ValueId{3}}, {ValueId{0}, ValueId{1}}};
  for (int n = 0; n < 8; ++n) {
    problem.nodes.push_back({.file_id = n,
                             .time_ns = times_ns[n],
                             .inputs = inputs[n],
                             .outputs = {ValueId{n + 1}}});
  }
  return problem;
}

TEST(ImproveWindows, ExchangesOneLargeRerunForTwoSmallOnes) {
  const Problem problem = OneLargeOrTwoSmall();
  const SearchModel model = MakeSearchModel(problem, true, true);
  Schedule schedule = GivenOrder(model);
  // Everything but A fits together with the inputs of node 4.
  const int64_t target_bytes = FindLifetimes(model, schedule).peak_bytes - 1000;
  schedule.items.insert(schedule.items.begin() + 7, Item{ItemKind::kRun, 0});
  SearchState state(model, schedule, target_bytes);
  ASSERT_TRUE(state.valid());
  ASSERT_EQ(state.excess_area(), 0);
  WorkBudget effort = EffortOf(100'000);
  CleanUp(state, effort);
  ASSERT_EQ(state.Makespan(), 9000);

  const WindowReport report =
      ImproveWindows(state, {.window_work = 10'000}, effort);
  EXPECT_EQ(report.improved, 1);
  EXPECT_EQ(state.Makespan(), 8500);
  EXPECT_EQ(state.excess_area(), 0);
}

TEST(ImproveWindows, IsNeverWorseAndTheSameEachTime) {
  int improved = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Problem problem = RandomProblem(seed, 30, seed % 2 == 0, seed % 3 != 0);
    if (seed % 3 == 1) AddRandomChoices(seed, problem);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const std::unique_ptr<SearchState> lowered = LoweredGreedily(model, 70);
    SearchState& state = *lowered;
    if (state.excess_area() > 0) continue;
    const Schedule old = state.ToSchedule();
    const double old_ns = state.Makespan();
    const double floor_ns = seed % 5 == 0
                                ? std::round(old_ns)
                                : static_cast<double>(model.compute_ns);
    Schedule results[2];
    for (Schedule& result : results) {
      state.Load(old);
      WorkBudget effort = EffortOf(20'000);
      const WindowReport report = ImproveWindows(
          state, {.window_work = 2'000, .floor_ns = floor_ns}, effort);
      result = state.ToSchedule();
      improved += report.improved;
      const Lifetimes lives = FindLifetimes(model, result);
      ASSERT_TRUE(lives.valid);
      EXPECT_LE(static_cast<double>(lives.peak_bytes), state.target());
      const double step_ns = FindTimes(model, result).step_ns;
      EXPECT_LE(step_ns, old_ns + 1e-6);
      EXPECT_GE(std::round(step_ns), floor_ns);
      EXPECT_EQ(report.improved > 0, step_ns < old_ns - 0.4);
    }
    EXPECT_EQ(results[0].items, results[1].items);
    EXPECT_EQ(results[0].host_home, results[1].host_home);
  }
  EXPECT_GT(improved, 10);
}

TEST(ImproveWindows, StopsAtItsLimitAndWhenCancelled) {
  const Problem problem = RandomProblem(7, 60, true, true);
  const SearchModel model = MakeSearchModel(problem, true, true);
  const std::unique_ptr<SearchState> lowered = LoweredGreedily(model, 70);
  SearchState& state = *lowered;
  ASSERT_EQ(state.excess_area(), 0);
  const Schedule old = state.ToSchedule();

  WorkBudget little = EffortOf(100);
  const WindowReport report =
      ImproveWindows(state, {.window_work = 60}, little);
  EXPECT_GT(report.searched, report.finished);
  EXPECT_LE(little.left, 0);
  EXPECT_GT(little.left, -little.PriceOf(state));

  state.Load(old);
  const std::atomic<bool> cancel = true;
  WorkBudget cancelled = EffortOf(kPlentyOfWork);
  cancelled.stop.cancel = &cancel;
  EXPECT_EQ(
      ImproveWindows(state, {.window_work = kPlentyOfWork}, cancelled).searched,
      0);
  EXPECT_EQ(state.ToSchedule().items, old.items);
}

}  // namespace
}  // namespace loadline::planner
