// A plan is loaded and run: the same weights for every plan, no allocation in a
// step, and no arena smaller than planned.
#include "executor/program/program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "planner/solve/solve.h"
#include "tests/executor/support/allocation_count.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

struct Outcome {
  std::vector<float> losses;
  std::vector<std::vector<std::byte>> weights;
};

Outcome Train20(const Toy& toy, const planner::Plan& plan,
                CpuDeviceOptions device_options = ToyDevice(),
                LoadOptions load = {}, int64_t examples = 40) {
  CpuDevice device(std::move(device_options));
  auto program = Load(toy.graph, toy.problem, plan, device, load);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  EXPECT_EQ(device.arena().arena_bytes, plan.arena_bytes);
  const DataSet data = ToyData(toy, examples);
  auto batcher = Batcher::Create(data, toy.options.batch, 5, true);
  EXPECT_TRUE(batcher.ok());
  Outcome run;
  for (int64_t step = 0; step < 20; ++step) {
    auto loss =
        (*program)->Step({.learning_rate = 0.05f, .step = step + 1, .seed = 1},
                         (*batcher)->Batch(step).value());
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) return run;
    run.losses.push_back(*loss);
  }
  run.weights = AllWeights(**program);
  return run;
}

TEST(Program, Learns) {
  const Toy toy = MakeToy();
  // A single batch, so that all losses are of the same examples.
  const Outcome run = Train20(toy, KeepPlan(toy), ToyDevice(), {}, 4);
  ASSERT_EQ(run.losses.size(), 20u);
  EXPECT_LT(run.losses.back(), run.losses.front());
  int64_t counter;
  std::memcpy(&counter, run.weights.back().data(), 8);
  EXPECT_EQ(counter, 20 * 21 / 2);  // every update ran once, in every step
}

TEST(Program, OffloadingChangesNoBit) {
  const Toy toy = MakeToy({.depth = 9});
  const Outcome keep = Train20(toy, KeepPlan(toy));
  const Outcome offload = Train20(toy, OffloadPlan(toy));
  EXPECT_EQ(offload.losses, keep.losses);
  EXPECT_EQ(offload.weights, keep.weights);
}

TEST(Program, OffloadingToAFileChangesNoBit) {
  const Toy toy = MakeToy({.depth = 9});
  CpuDeviceOptions options = ToyDevice();
  options.make_store = FileStoreAt(TemporaryPath("offload"));
  EXPECT_EQ(Train20(toy, OffloadPlan(toy), options).weights,
            Train20(toy, KeepPlan(toy)).weights);
}

TEST(Program, SlowLanesChangeNoBit) {
  const Toy toy = MakeToy({.depth = 7});
  const Outcome keep = Train20(toy, KeepPlan(toy));
  for (Lane slow : {Lane::kD2h, Lane::kH2d}) {
    CpuDeviceOptions options = ToyDevice();
    options.lane_capacity = 3;
    options.before_lane_command = [slow](Lane lane) {
      if (lane == slow) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    };
    EXPECT_EQ(Train20(toy, OffloadPlan(toy), options).weights, keep.weights);
  }
}

TEST(Program, PoisonChangesNoBit) {
  const Toy toy = MakeToy({.depth = 9});
  const Outcome keep = Train20(toy, KeepPlan(toy));
  for (const planner::Plan& plan : {KeepPlan(toy), OffloadPlan(toy)}) {
    const Outcome poisoned = Train20(toy, plan, ToyDevice(), {.poison = true});
    EXPECT_EQ(poisoned.losses, keep.losses);
    EXPECT_EQ(poisoned.weights, keep.weights);
  }
}

TEST(Program, SolvedPlansChangeNoBit) {
  const Toy toy = MakeToy({.depth = 12, .batch = 8});
  const Outcome keep = Train20(toy, KeepPlan(toy));
  const auto all = planner::KeepEverything(toy.problem);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(Train20(toy, *all).weights, keep.weights);
  for (bool recompute : {false, true}) {
    for (bool offload : {false, true}) {
      const auto plan =
          planner::SolveSmallest(toy.problem, {.allow_recompute = recompute,
                                               .allow_offload = offload,
                                               .work_limit = 100'000});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_LE(plan->arena_bytes, all->arena_bytes);
      EXPECT_EQ(Train20(toy, *plan).weights, keep.weights);
      EXPECT_EQ(Train20(toy, *plan, ToyDevice(), {.poison = true}).weights,
                keep.weights);
    }
  }
}

TEST(Program, AllocatesNothingInAStep) {
  const Toy toy = MakeToy();
  for (const planner::Plan& plan : {KeepPlan(toy), OffloadPlan(toy)}) {
    for (bool trace : {false, true}) {
      CpuDevice device(ToyDevice());
      auto program = Load(toy.graph, toy.problem, plan, device,
                          {.poison = trace, .trace = trace});
      ASSERT_TRUE(program.ok()) << program.status();
      const DataSet data = ToyData(toy, 40);
      auto batcher = Batcher::Create(data, toy.options.batch, 5, true);
      ASSERT_TRUE(batcher.ok());
      const int64_t before = AllocationCount();
      for (int64_t step = 0; step < 25; ++step) {  // into the third epoch
        const auto loss = (*program)->Step({.step = step + 1},
                                           (*batcher)->Batch(step).value());
        if (!loss.ok()) FAIL() << loss.status();
      }
      EXPECT_EQ(AllocationCount() - before, 0);
    }
  }
}

TEST(Load, RefusesAnArenaOneAlignmentUnitSmaller) {
  const Toy toy = MakeToy();
  const planner::Plan plan = OffloadPlan(toy);
  for (int64_t less : {int64_t{256}, int64_t{0}}) {
    CpuDevice device(ToyDevice());
    ASSERT_TRUE(device
                    .CreateArena({.arena_bytes = plan.arena_bytes - less,
                                  .host_bytes = plan.host_bytes,
                                  .event_count = 1000,
                                  .max_operands = 10})
                    .ok());
    const auto program = Load(toy.graph, toy.problem, plan, device);
    if (less == 0) {
      EXPECT_TRUE(program.ok()) << program.status();
      continue;
    }
    EXPECT_EQ(program.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(
        program.status().message().find(std::to_string(plan.arena_bytes - 256)),
        absl::string_view::npos);
  }
}

TEST(Load, RefusesASmallerHostStoreAndTooFewEvents) {
  const Toy toy = MakeToy();
  const planner::Plan plan = OffloadPlan(toy);
  const ArenaSpec enough = {.arena_bytes = plan.arena_bytes,
                            .host_bytes = plan.host_bytes,
                            .event_count = 1000,
                            .max_operands = 10};
  ArenaSpec spec = enough;
  spec.host_bytes -= 1;
  CpuDevice less_host(ToyDevice());
  ASSERT_TRUE(less_host.CreateArena(spec).ok());
  EXPECT_EQ(Load(toy.graph, toy.problem, plan, less_host).status().code(),
            absl::StatusCode::kResourceExhausted);
  spec = enough;
  spec.event_count = 1;
  CpuDevice less_events(ToyDevice());
  ASSERT_TRUE(less_events.CreateArena(spec).ok());
  EXPECT_EQ(Load(toy.graph, toy.problem, plan, less_events).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Load, RefusesWhatVerifyRejects) {
  const Toy toy = MakeToy();
  planner::Plan plan = OffloadPlan(toy);
  for (planner::Step& step : plan.steps) {
    if (step.lane == Lane::kD2h) step.wait.clear();
  }
  CpuDevice device(ToyDevice());
  EXPECT_EQ(Load(toy.graph, toy.problem, plan, device).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(device.has_arena());
}

TEST(Load, RefusesAPlanOfAnotherGraph) {
  const Toy toy = MakeToy({.depth = 5});
  Toy other = MakeToy({.depth = 6});
  CpuDevice device(ToyDevice());
  const auto program = Load(toy.graph, other.problem, KeepPlan(other), device);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Load, RefusesAKernelThatNeedsMoreWorkspaceThanPlanned) {
  Toy toy = MakeToy();
  for (planner::Node& node : toy.problem.nodes) {
    if (node.workspace_bytes > 0) node.workspace_bytes -= 1;
  }
  CpuDevice device(ToyDevice());
  const auto program = Load(toy.graph, toy.problem, KeepPlan(toy), device);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(program.status().message().find("ToyMulGrad"),
            absl::string_view::npos);
}

// Fails in its second run.
class FailingKernel : public Kernel {
 public:
  absl::Status Run(const KernelArgs&) override {
    return ++runs_ == 2 ? absl::OutOfRangeError("index 9") : absl::OkStatus();
  }

 private:
  int runs_ = 0;
};

TEST(Program, AFailedKernelNamesItsNodeAndEndsTheRun) {
  const Toy toy = MakeToy();
  CpuDeviceOptions options;
  options.prepare =
      [](const models::Graph& graph,
         const models::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (node.op == "ToyLoss") {
      return std::unique_ptr<Kernel>(new FailingKernel());
    }
    return PrepareToyKernel(graph, node);
  };
  CpuDevice device(options);
  const planner::Plan plan = OffloadPlan(toy);
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok());
  const DataSet data = ToyData(toy, 4);
  auto batcher = Batcher::Create(data, 4, 0, false);
  ASSERT_TRUE((*program)->Step({}, (*batcher)->Batch(0).value()).ok());
  const absl::Status status =
      (*program)->Step({}, (*batcher)->Batch(0).value()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(status.message().find("ToyLoss"), absl::string_view::npos);
  EXPECT_EQ((*program)->Step({}, (*batcher)->Batch(0).value()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::vector<std::byte> w(toy.options.width * 4);
  EXPECT_EQ((*program)->ReadPersistent("w1", absl::MakeSpan(w)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Program, ReadsAndWritesPersistentValuesByName) {
  const Toy toy = MakeToy();
  CpuDevice device(ToyDevice());
  const planner::Plan plan = KeepPlan(toy);
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok());
  std::vector<std::byte> w(toy.options.width * 4, std::byte{7});
  std::vector<std::byte> read(w.size());
  ASSERT_TRUE((*program)->WritePersistent("w3", w).ok());
  ASSERT_TRUE((*program)->ReadPersistent("w3", absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, w);
  EXPECT_EQ((*program)->WritePersistent("h1", w).code(),
            absl::StatusCode::kNotFound);
  w.pop_back();
  EXPECT_EQ((*program)->WritePersistent("w3", w).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::executor
