// The CUDA device on a driver without a GPU: one allocation, one capture, and
// events as the only ordering.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cuda/device.h"
#include "executor/program/program.h"
#include "executor/program/trace.h"
#include "planner/base/align.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"
#include "tests/executor/support/toy_cuda.h"

namespace loadline::executor {
namespace {

// Calls that allocate or create, which a step may not do.
int64_t Creations(const FakeCudaDriver& driver) {
  return driver.calls("Malloc") + driver.calls("HostRegister") +
         driver.calls("CreateStream") + driver.calls("CreateEvent");
}

TEST(CudaDevice, AllocatesTheArenaOnceAndNothingInAStep) {
  const Toy toy = MakeToy({.depth = 7});
  const planner::Plan plan = OffloadPlan(toy);
  FakeCudaDriver driver;
  {
    const auto device = ToyCudaDevice(driver);
    auto program = Load(toy.graph, toy.problem, plan, *device);
    ASSERT_TRUE(program.ok()) << program.status();
    const int64_t made = Creations(driver);
    ASSERT_TRUE(TrainToy(toy, plan, *device).ok());
    EXPECT_EQ(Creations(driver), made);
    EXPECT_EQ(
        driver.allocated(),
        (std::vector<int64_t>{plan.arena_bytes, CudaDevice::kControlBytes}));
    EXPECT_EQ(
        driver.pinned(),
        (std::vector<int64_t>{plan.host_bytes, device->arena().upload_bytes,
                              CudaDevice::kControlBytes}));
    int64_t inputs = 0;
    for (const models::ValueId id : toy.graph.inputs) {
      inputs += planner::AlignUp(toy.graph.value(id).type.bytes());
    }
    EXPECT_EQ(device->arena().upload_bytes, inputs);
  }
  EXPECT_EQ(driver.live(), 0);
}

TEST(CudaDevice, CapturesAStepOnceAndReplaysIt) {
  const Toy toy = MakeToy({.depth = 7});
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  const auto run = TrainToy(toy, OffloadPlan(toy), *device);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, TrainToyOnCpu(toy));
  EXPECT_EQ(driver.calls("BeginCapture"), 1);
  EXPECT_EQ(driver.calls("Instantiate"), 1);
  EXPECT_EQ(driver.calls("LaunchGraph"), kToySteps);
  EXPECT_EQ(driver.calls("Kernel"),
            static_cast<int64_t>(toy.graph.nodes.size()));
}

TEST(CudaDevice, NamesWhatItEnqueuesAfterThePlansSteps) {
  const Toy toy = MakeToy({.depth = 4});
  const planner::Plan plan = OffloadPlan(toy);
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  ASSERT_TRUE(TrainToy(toy, plan, *device).ok());
  std::vector<std::string> expected;
  for (const planner::Step& step : plan.steps) {
    expected.push_back(absl::StrCat(
        TraceLabel(toy.problem, plan, step),
        step.kind == planner::StepKind::kCopy ? ": Copy" : ": Kernel"));
  }
  std::vector<std::string> enqueued;
  int64_t replays = 0;
  for (const std::string& call : driver.ranged()) {
    if (call == "step: LaunchGraph") ++replays;
    if (absl::EndsWith(call, ": Kernel") ||
        (absl::EndsWith(call, ": Copy") && call[0] == 'h')) {
      enqueued.push_back(call);
    }
  }
  std::sort(expected.begin(), expected.end());
  std::sort(enqueued.begin(), enqueued.end());
  EXPECT_EQ(enqueued, expected);
  EXPECT_EQ(replays, kToySteps - 1);
}

TEST(CudaDevice, EventsAloneKeepTheOrder) {
  const Toy toy = MakeToy({.depth = 9});
  const ToyOutcome expected = TrainToyOnCpu(toy);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (bool graph : {true, false}) {
      FakeCudaDriver driver({.seed = seed});
      const auto device = ToyCudaDevice(driver, graph);
      const auto run =
          TrainToy(toy, OffloadPlan(toy), *device, {.poison = seed % 2 == 0});
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(*run, expected) << "seed " << seed << ", graph " << graph;
      EXPECT_EQ(driver.calls("LaunchGraph"), graph ? kToySteps : 0);
    }
  }
}

TEST(CudaDevice, OneCopyEngineIsOneStreamForBothCopyLanes) {
  const Toy toy = MakeToy({.depth = 9});
  for (int engines : {1, 2}) {
    FakeCudaDriver driver({.copy_engines = engines});
    const auto device = ToyCudaDevice(driver);
    const auto run = TrainToy(toy, OffloadPlan(toy), *device);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(*run, TrainToyOnCpu(toy));
    EXPECT_EQ(driver.calls("CreateStream"), engines == 1 ? 2 : 3);
  }
}

// Each program has a graph of its own, which is destroyed with the program.
TEST(CudaDevice, KeepsTheStepsOfSeveralPrograms) {
  const Toy toy = MakeToy({.depth = 7});
  const planner::Plan keep = KeepPlan(toy);
  const planner::Plan offload = OffloadPlan(toy);
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  auto large = Load(toy.graph, toy.problem, keep, *device);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(Load(toy.graph, toy.problem, offload, *device).status().code(),
            absl::StatusCode::kResourceExhausted);  // no host store allocated
  auto other = Load(toy.graph, toy.problem, keep, *device);
  ASSERT_TRUE(other.ok()) << other.status();
  const DataSet data = ToyData(toy, 4);
  auto batcher = Batcher::Create(data, 4, 5, true);
  std::vector<float> losses;
  const int64_t live = driver.live();
  for (int round = 0; round < 3; ++round) {
    for (Program* program : {large->get(), other->get()}) {
      auto loss =
          program->Step({.step = round + 1}, (*batcher)->Batch(0).value());
      ASSERT_TRUE(loss.ok()) << loss.status();
      losses.push_back(*loss);
    }
  }
  EXPECT_EQ(losses, std::vector<float>(6, losses[0]));  // learning rate 0
  EXPECT_EQ(driver.calls("BeginCapture"), 2);
  EXPECT_EQ(driver.live(), live + 2);
  other->reset();
  EXPECT_EQ(driver.live(), live + 1);
}

TEST(CudaDevice, TracesWithoutAGraphAndWithTheSameBits) {
  const Toy toy = MakeToy({.depth = 7});
  const planner::Plan plan = OffloadPlan(toy);
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  const auto run = TrainToy(toy, plan, *device, {.trace = true});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, TrainToyOnCpu(toy));
  EXPECT_EQ(driver.calls("BeginCapture"), 0);
  ASSERT_EQ(device->trace().size(),
            plan.steps.size() + toy.graph.inputs.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_GT(device->trace()[s].start_ns, 0);
    EXPECT_GT(device->trace()[s].end_ns, device->trace()[s].start_ns);
    for (planner::StepId wait : plan.steps[s].wait) {
      EXPECT_GE(device->trace()[s].start_ns,
                device->trace()[planner::Index(wait)].end_ns);
    }
  }
}

}  // namespace
}  // namespace loadline::executor
