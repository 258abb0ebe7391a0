// Tested in smallest_start_test.cc.
#include "planner/solve/smallest_start.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "planner/schedule/simulate.h"
#include "planner/search/eviction_start.h"

namespace loadline::planner {
namespace {

// Targets, as shares of the bound. A pass rarely ends within the bound itself,
// and which of the targets has the best layout is luck: on a Llama of 5,300
// nodes all are laid out 6 to 30 % above their target. The next row is for
// problems where no pass ends within the first.
constexpr int kTargetsPerRow = 4;
constexpr std::array<std::array<double, kTargetsPerRow>, 3> kTargets = {
    std::array{1.002, 1.005, 1.01, 1.02}, std::array{1.05, 1.1, 1.2, 1.4},
    std::array{1.7, 2.0, 3.0, 5.0}};
// Layouts of so many items take seconds each: then only the first order.
constexpr int kManyNodes = 20'000;

// The one of the smallest arena, and of these the fastest.
std::optional<LaidOutSchedule> Smallest(
    std::vector<std::optional<LaidOutSchedule>> plans) {
  std::optional<LaidOutSchedule> best;
  for (std::optional<LaidOutSchedule>& plan : plans) {
    if (!plan) continue;
    if (!best || std::pair(plan->arena_bytes, plan->step_ns) <
                     std::pair(best->arena_bytes, best->step_ns)) {
      best = std::move(plan);
    }
  }
  return best;
}

}  // namespace

std::optional<LaidOutSchedule> SmallestStart(
    const SearchModel& model, const std::vector<Schedule>& orders,
    int64_t bound_bytes, uint64_t seed, const WorkBudget& outside) {
  const int order_count =
      model.node_count < kManyNodes ? static_cast<int>(std::size(orders)) : 1;
  for (const auto& row : kTargets) {
    std::vector<std::optional<LaidOutSchedule>> plans(order_count *
                                                      kTargetsPerRow);
    outside.ForEach(static_cast<int>(std::size(plans)), [&](int i) {
      if (outside.Interrupted()) return;
      const auto target_bytes = static_cast<int64_t>(
          std::ceil(static_cast<double>(bound_bytes) * row[i / order_count]));
      const std::optional<Schedule> schedule =
          EvictionStart(model, orders[i % order_count], target_bytes, seed);
      if (!schedule) return;
      absl::StatusOr<LaidOutSchedule> plan =
          LayOutTightest(model, *schedule, FindTimes(model, *schedule).step_ns,
                         model.tuning.layout.pack_work);
      if (plan.ok()) plans[i] = *std::move(plan);
    });
    std::optional<LaidOutSchedule> best = Smallest(std::move(plans));
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace loadline::planner
