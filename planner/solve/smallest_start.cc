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

// Bytes of a pass, as shares of the bound: the target, and what moments usually
// need at most (EvictionStartOptions). A pass rarely ends within the bound
// itself. Layouts take 0 to 2 % more than the target with usual bytes of 0.6 to
// 0.8, and 13 to 20 % more without (a Llama of 5,300 nodes, fp32); the fuller
// one copies less. The next row is for problems where no pass ends within the
// first.
struct PassBytes {
  double target, usual;
};
constexpr int kPassesPerRow = 4;
constexpr std::array<std::array<PassBytes, kPassesPerRow>, 3> kPasses = {{
    {{{1.0, 0.8}, {1.002, 0.9}, {1.005, 0.6}, {1.01, 0.8}}},
    {{{1.05, 0.9}, {1.1, 0.9}, {1.2, 1.0}, {1.4, 1.1}}},
    {{{1.7, 1.4}, {2.0, 1.6}, {3.0, 2.4}, {5.0, 4.0}}},
}};
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
  for (const auto& row : kPasses) {
    std::vector<std::optional<LaidOutSchedule>> plans(order_count *
                                                      kPassesPerRow);
    outside.ForEach(static_cast<int>(std::size(plans)), [&](int i) {
      if (outside.Interrupted()) return;
      const PassBytes& pass = row[i / order_count];
      const auto bytes = [bound_bytes](double share) {
        return static_cast<int64_t>(
            std::ceil(static_cast<double>(bound_bytes) * share));
      };
      std::optional<Schedule> schedule =
          EvictionStart(model, orders[i % order_count],
                        {bytes(pass.target), bytes(pass.usual), seed});
      // A pass may fail because it evicts too much too often to be far below
      // its target at most moments.
      if (!schedule) {
        schedule = EvictionStart(model, orders[i % order_count],
                                 {bytes(pass.target), INT64_MAX, seed});
      }
      if (!schedule) return;
      const double step_ns = FindTimes(model, *schedule).step_ns;
      if (step_ns > kMostStepNs) return;
      absl::StatusOr<LaidOutSchedule> plan = LayOutTightest(
          model, *schedule, step_ns, model.tuning.layout.pack_work);
      if (plan.ok()) plans[i] = *std::move(plan);
    });
    std::optional<LaidOutSchedule> best = Smallest(std::move(plans));
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace loadline::planner
