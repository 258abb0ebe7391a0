// Law 2 on random models: for every small network that RapidCheck generates,
// every plan of its training step gives the weights of keep-everything, bit for
// bit. A failing network is shrunk to as few layers as still fail.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <vector>

#include "executor/cpu/device.h"
#include "planner/solve/solve.h"
#include "tests/property/random_network.h"

namespace loadline {
namespace {

absl::StatusOr<std::vector<std::byte>> Train(const NetworkStep& step,
                                             const planner::Plan& plan) {
  executor::CpuDevice device;
  return TrainNetwork(step, plan, device, /*count=*/3);
}

TEST(PlanInvariance, HoldsOnRandomNetworksAtRandomBudgets) {
  const bool held = rc::check([] {
    // RapidCheck scales a number with the size of the case: by itself, a case
    // of few layers would have only the first kinds.
    const auto number =
        rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint8_t>(0, 255));
    const auto layers = *rc::gen::resize(
        16, rc::gen::container<Layers>(rc::gen::pair(number, number)));
    const auto step = MakeNetworkStep(layers);
    RC_ASSERT(step.ok());
    const auto keep = planner::KeepEverything(step->problem);
    RC_ASSERT(keep.ok());
    const auto expected = Train(*step, *keep);
    RC_ASSERT(expected.ok());

    planner::SolveOptions options;
    options.work_limit = 5'000;  // any plan will do
    options.bound_work_limit = 0;
    options.allow_recompute = *rc::gen::arbitrary<bool>();
    options.allow_offload = *rc::gen::arbitrary<bool>();
    const auto smallest = planner::SolveSmallest(step->problem, options);
    RC_ASSERT(smallest.ok());
    options.budget_bytes = *rc::gen::resize(
        rc::kNominalSize,
        rc::gen::inRange(smallest->budget_bytes, keep->budget_bytes + 1));
    const auto between = planner::Solve(step->problem, options);
    RC_ASSERT(between.ok());
    for (const planner::Plan* plan : {&*smallest, &*between}) {
      RC_ASSERT(plan->arena_bytes <= plan->budget_bytes);
      const auto weights = Train(*step, *plan);
      RC_ASSERT(weights.ok());
      RC_ASSERT(*weights == *expected);
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace loadline
