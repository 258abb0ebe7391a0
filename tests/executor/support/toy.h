// A small training step with its own kernels and plans, so that the run loop is
// tested without a model, an importer or a solver: a chain of elementwise
// products h_i = h_{i-1} * w_i with a squared error, its exact gradient, and
// plain gradient descent.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_H_

#include <memory>
#include <string>
#include <vector>

#include "executor/cpu/device.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

struct ToyOptions {
  int depth = 6;
  int64_t batch = 4;
  int64_t width = 64;
  int64_t more_workspace_bytes = 0;  // planned in addition to the kernels' need
  bool train = true;                 // false: only loss and count, no updates
};

struct Toy {
  ToyOptions options;
  models::Graph graph;
  planner::Problem problem;
};

Toy MakeToy(const ToyOptions& options = {});

// Any graph whose kernels need no workspace, with a problem of it.
Toy ToyOf(models::Graph graph);

// Every value has its own place; nothing is copied.
planner::Plan KeepPlan(const Toy& toy);

// Every h_i that the backward pass reads is copied to the host and back; the
// device holds three of them during the forward pass and two during the
// backward pass. Requires train and depth >= 4.
planner::Plan OffloadPlan(const Toy& toy);

// Kernels of the toy's operators, for CpuDeviceOptions::prepare.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareToyKernel(
    const models::Graph& graph, const models::Node& node);
CpuDeviceOptions ToyDevice();

// `examples` seeded examples for the toy's inputs.
DataSet ToyData(const Toy& toy, int64_t examples, uint64_t seed = 1);

// Contents of every parameter and state.
std::vector<std::vector<std::byte>> AllWeights(Program& program);

// A path in a folder of this process that is removed at exit.
std::string TemporaryPath(const std::string& name);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_H_
