// Random small networks whose training steps run on any device, for tests of
// what holds for every plan.
#ifndef LOADLINE_TESTS_PROPERTY_RANDOM_NETWORK_H_
#define LOADLINE_TESTS_PROPERTY_RANDOM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/device/device.h"
#include "executor/program/program.h"
#include "models/graph.h"
#include "passes/split_operators.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline {

// One layer: its kind (modulo the number of kinds) and the distance to the
// layer of its second operand.
using Layers = std::vector<std::pair<uint8_t, uint8_t>>;

// A machine on which both copies and recomputation are sometimes worthwhile.
planner::Machine SlowMachine();

struct NetworkStep {
  models::Graph graph;
  planner::Problem problem;
};

// The training step of a classifier of RunSteps' data, with SlowMachine; chains
// of operators split.
absl::StatusOr<NetworkStep> MakeStep(models::Graph model,
                                     const std::vector<passes::Split>& splits);
// The same of the network with these layers.
absl::StatusOr<NetworkStep> MakeNetworkStep(const Layers& layers);

// Runs training steps first, first + 1, ... (counted from 1) on the step's one
// batch of data.
absl::Status RunSteps(executor::Program& program, int64_t first, int count);

// Weights and optimizer state, concatenated.
absl::StatusOr<std::vector<std::byte>> SavedBytes(executor::Program& program);

// Sets them.
absl::Status RestoreBytes(executor::Program& program,
                          absl::Span<const std::byte> saved);

// Loads the plan with freed bytes overwritten, which exposes a plan that frees
// too early, runs `count` steps and returns SavedBytes.
absl::StatusOr<std::vector<std::byte>> TrainNetwork(const NetworkStep& step,
                                                    const planner::Plan& plan,
                                                    executor::Device& device,
                                                    int count);

}  // namespace loadline

#endif  // LOADLINE_TESTS_PROPERTY_RANDOM_NETWORK_H_
