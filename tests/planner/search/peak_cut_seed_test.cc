// Schedules that start from one program: against every choice there is at the
// point, on problems small enough to try them all.
#include "planner/search/peak_cut_seed.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr PeakCutSeedOptions kExact = {.iteration_limit = 100'000,
                                       .rounded = false};
constexpr size_t kMostValues = 14;

// What is alive at the highest point of the given order, and the cheapest way
// to be within the target there, by trying all.
class AllWays {
 public:
  explicit AllWays(const SearchModel& model)
      : model_(model), lives_(FindLifetimes(model, GivenOrder(model))) {
    cut_ = static_cast<size_t>(
        std::max_element(lives_.live_bytes.begin(), lives_.live_bytes.end()) -
        lives_.live_bytes.begin());
    alive_.assign(model.value_count, 0);
    std::vector<char> busy(model.value_count, 0);
    for (int i : lives_.reads[cut_]) busy[lives_.instances[i].value] = 1;
    for (int i : lives_.makes[cut_]) busy[lives_.instances[i].value] = 1;
    for (const Instance& instance : lives_.instances) {
      const int v = instance.value;
      if (instance.lower > static_cast<int>(cut_) ||
          instance.upper <= static_cast<int>(cut_)) {
        continue;
      }
      alive_[v] = 1;
      if (busy[v] == 0 && !instance.last && MayRerun(v)) values_.push_back(v);
    }
    idle_ = values_.size();
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!MayRerun(values_[i])) continue;
      for (int input : model_.reads[model_.producer[values_[i]]]) {
        if (alive_[input] == 0 &&
            std::find(values_.begin(), values_.end(), input) == values_.end()) {
          values_.push_back(input);
        }
      }
    }
  }

  size_t cut() const { return cut_; }
  int64_t peak_bytes() const { return lives_.live_bytes[cut_]; }
  size_t value_count() const { return values_.size(); }

  // Least time of reruns; none if no way is within the target.
  std::optional<int64_t> LeastNs(int64_t target_bytes) const {
    std::optional<int64_t> least;
    for (uint32_t kept = 0; kept < 1U << values_.size(); ++kept) {
      int64_t bytes = peak_bytes();
      std::vector<char> there = alive_;
      for (size_t i = 0; i < values_.size(); ++i) {
        const bool keep = (kept >> i & 1) != 0;
        there[values_[i]] = keep ? 1 : 0;
        const int64_t own = model_.bytes[values_[i]];
        bytes += i < idle_ ? (keep ? 0 : -own) : (keep ? own : 0);
      }
      if (bytes > target_bytes) continue;
      int64_t ns = 0;
      bool possible = true;
      for (size_t i = 0; i < idle_ && possible; ++i) {
        possible = Bring(values_[i], there, ns);
      }
      if (possible && (!least || ns < *least)) least = ns;
    }
    return least;
  }

 private:
  bool MayRerun(int v) const {
    return model_.producer[v] >= 0 && model_.may_rerun[model_.producer[v]] != 0;
  }

  bool Bring(int v, std::vector<char>& there, int64_t& ns) const {
    if (there[v] != 0) return true;
    if (!MayRerun(v)) return false;
    const int node = model_.producer[v];
    for (int input : model_.reads[node]) {
      if (!Bring(input, there, ns)) return false;
    }
    ns += model_.node_ns[node];
    for (int made : model_.makes[node]) there[made] = 1;
    return true;
  }

  const SearchModel& model_;
  const Lifetimes lives_;
  size_t cut_ = 0;
  std::vector<char> alive_;  // by value: at the cut
  std::vector<int> values_;  // to decide on, those that are alive first
  size_t idle_ = 0;
};

// Nothing in place: its bytes depend on more than what is kept.
Problem WithoutInplace(Problem problem) {
  for (Node& node : problem.nodes) node.inplace.clear();
  return problem;
}

TEST(SeedFromPeakCut, IsTheCheapestChoiceAtTheHighestPoint) {
  int compared = 0, none = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem =
        WithoutInplace(RandomProblem(seed, 16, false, false));
    const SearchModel model = MakeSearchModel(problem, true, false);
    const AllWays all(model);
    if (all.value_count() > kMostValues) continue;
    for (int percent : {90, 75, 60, 45}) {
      const int64_t target_bytes = all.peak_bytes() * percent / 100;
      const PeakCutSeed start =
          SeedFromPeakCut(model, GivenOrder(model), target_bytes, kExact);
      const std::optional<int64_t> least_ns = all.LeastNs(target_bytes);
      ASSERT_EQ(start.schedule.has_value(), least_ns.has_value())
          << seed << " at " << percent << " %";
      if (!least_ns) {
        ++none;
        continue;
      }
      ++compared;
      const Lifetimes lives = FindLifetimes(model, *start.schedule);
      ASSERT_TRUE(lives.valid) << seed;
      EXPECT_LE(lives.live_bytes[all.cut()], target_bytes) << seed;
      EXPECT_EQ(FindTimes(model, *start.schedule).compute_ns,
                model.compute_ns + *least_ns)
          << seed << " at " << percent << " %";
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(none, 50);
}

TEST(SeedFromPeakCut, LeavesWhatItWouldCopyWhereItIs) {
  int fewer = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    const Problem problem = RandomProblem(seed, 24, true, true);
    const SearchModel alone = MakeSearchModel(problem, true, false);
    const SearchModel both = MakeSearchModel(problem, true, true);
    const int64_t target_bytes =
        FindLifetimes(both, GivenOrder(both)).peak_bytes * 7 / 10;
    const PeakCutSeed reruns =
        SeedFromPeakCut(alone, GivenOrder(alone), target_bytes, kExact);
    const PeakCutSeed start =
        SeedFromPeakCut(both, GivenOrder(both), target_bytes, kExact);
    if (!start.schedule) continue;
    for (const Item& item : start.schedule->items) {
      EXPECT_EQ(item.kind, ItemKind::kRun);
    }
    if (!reruns.schedule) continue;
    EXPECT_LE(start.schedule->items.size(), reruns.schedule->items.size());
    fewer += start.schedule->items.size() < reruns.schedule->items.size();
  }
  EXPECT_GT(fewer, 5);
}

TEST(SeedFromPeakCut, RoundedIsNearlyAsCheap) {
  int64_t exact_ns = 0, rounded_ns = 0;
  int compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem =
        WithoutInplace(RandomProblem(seed, 60, false, false));
    const SearchModel model = MakeSearchModel(problem, true, false);
    const Schedule order = GivenOrder(model);
    const int64_t target_bytes =
        FindLifetimes(model, order).peak_bytes * 6 / 10;
    const PeakCutSeed exact =
        SeedFromPeakCut(model, order, target_bytes, kExact);
    const PeakCutSeed rounded =
        SeedFromPeakCut(model, order, target_bytes, {.iteration_limit = 1000});
    if (!exact.schedule || !rounded.schedule) continue;
    ASSERT_TRUE(FindLifetimes(model, *rounded.schedule).valid) << seed;
    ++compared;
    exact_ns += FindTimes(model, *exact.schedule).compute_ns;
    rounded_ns += FindTimes(model, *rounded.schedule).compute_ns;
  }
  EXPECT_GT(compared, 20);
  EXPECT_LT(static_cast<double>(rounded_ns),
            1.05 * static_cast<double>(exact_ns));
}

TEST(SeedFromPeakCut, HasNothingToDoWhereEverythingFits) {
  const Problem problem = RandomProblem(1, 30, true, true);
  const SearchModel model = MakeSearchModel(problem, true, true);
  const int64_t peak_bytes = FindLifetimes(model, GivenOrder(model)).peak_bytes;
  const PeakCutSeed start =
      SeedFromPeakCut(model, GivenOrder(model), peak_bytes, kExact);
  EXPECT_FALSE(start.schedule);
  EXPECT_EQ(start.iterations, 0);
}

}  // namespace
}  // namespace loadline::planner
