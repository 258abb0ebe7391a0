// The CUDA device on a driver without a GPU: one allocation, one capture,
// events and nothing else for order, and no error that leaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_device.h"
#include "executor/program/program.h"
#include "executor/program/trace.h"
#include "planner/base/status_macros.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

std::unique_ptr<CudaDevice> ToyCudaDevice(FakeCudaDriver& driver,
                                          bool graph = true) {
  auto device = CudaDevice::Create(
      driver, {.graph = graph, .prepare = OnStreams(driver, PrepareToyKernel)});
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

struct Outcome {
  std::vector<float> losses;
  std::vector<std::vector<std::byte>> weights;

  bool operator==(const Outcome& o) const {
    return losses == o.losses && weights == o.weights;
  }
};

constexpr int64_t kSteps = 4;

// The learning rate changes from step to step.
absl::StatusOr<Outcome> TrainToy(const Toy& toy, const planner::Plan& plan,
                                 Device& device, LoadOptions load = {}) {
  LOADLINE_ASSIGN_OR_RETURN(auto program,
                            Load(toy.graph, toy.problem, plan, device, load));
  const DataSet data = ToyData(toy, 40);
  LOADLINE_ASSIGN_OR_RETURN(auto batcher,
                            Batcher::Create(data, toy.options.batch, 5, true));
  Outcome run;
  for (int64_t step = 0; step < kSteps; ++step) {
    LOADLINE_ASSIGN_OR_RETURN(
        const float loss,
        program->Step({.learning_rate = 0.05f / static_cast<float>(step + 1),
                       .step = step + 1,
                       .seed = 1},
                      batcher->Batch(step)));
    run.losses.push_back(loss);
  }
  for (models::ValueId id : program->saved_values()) {
    const models::Value& value = toy.graph.value(id);
    run.weights.emplace_back(value.type.bytes());
    LOADLINE_RETURN_IF_ERROR(program->ReadPersistent(
        value.name, absl::MakeSpan(run.weights.back())));
  }
  return run;
}

Outcome OnCpu(const Toy& toy) {
  CpuDevice device(ToyDevice());
  auto run = TrainToy(toy, KeepPlan(toy), device);
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

// Allocations and whatever else a step may not do.
int64_t Makings(const FakeCudaDriver& driver) {
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
    const int64_t made = Makings(driver);
    ASSERT_TRUE(TrainToy(toy, plan, *device).ok());
    EXPECT_EQ(Makings(driver), made);
    EXPECT_EQ(
        driver.allocated(),
        (std::vector<int64_t>{plan.arena_bytes, CudaDevice::kControlBytes}));
    EXPECT_EQ(
        driver.pinned(),
        (std::vector<int64_t>{plan.host_bytes, CudaDevice::kControlBytes}));
  }
  EXPECT_EQ(driver.live(), 0);
}

TEST(CudaDevice, CapturesAStepOnceAndReplaysIt) {
  const Toy toy = MakeToy({.depth = 7});
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  const auto run = TrainToy(toy, OffloadPlan(toy), *device);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, OnCpu(toy));
  EXPECT_EQ(driver.calls("BeginCapture"), 1);
  EXPECT_EQ(driver.calls("Instantiate"), 1);
  EXPECT_EQ(driver.calls("LaunchGraph"), kSteps);
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
  std::vector<std::string> told;
  int64_t replays = 0;
  for (const std::string& call : driver.ranged()) {
    if (call == "step: LaunchGraph") ++replays;
    if (absl::EndsWith(call, ": Kernel") ||
        (absl::EndsWith(call, ": Copy") && call[0] == 'h')) {
      told.push_back(call);
    }
  }
  std::sort(expected.begin(), expected.end());
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, expected);
  EXPECT_EQ(replays, kSteps - 1);
}

TEST(CudaDevice, EventsAloneKeepTheOrder) {
  const Toy toy = MakeToy({.depth = 9});
  const Outcome expected = OnCpu(toy);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (bool graph : {true, false}) {
      FakeCudaDriver driver({.seed = seed});
      const auto device = ToyCudaDevice(driver, graph);
      const auto run =
          TrainToy(toy, OffloadPlan(toy), *device, {.poison = seed % 2 == 0});
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(*run, expected) << "seed " << seed << ", graph " << graph;
      EXPECT_EQ(driver.calls("LaunchGraph"), graph ? kSteps : 0);
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
    EXPECT_EQ(*run, OnCpu(toy));
    EXPECT_EQ(driver.calls("CreateStream"), engines == 1 ? 2 : 3);
  }
}

// A program's own graph each, whoever ran last; it goes with the program.
TEST(CudaDevice, KeepsTheStepsOfSeveralPrograms) {
  const Toy toy = MakeToy({.depth = 7});
  const planner::Plan keep = KeepPlan(toy);
  const planner::Plan offload = OffloadPlan(toy);
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  auto large = Load(toy.graph, toy.problem, keep, *device);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(Load(toy.graph, toy.problem, offload, *device).status().code(),
            absl::StatusCode::kResourceExhausted);  // no host store set aside
  auto other = Load(toy.graph, toy.problem, keep, *device);
  ASSERT_TRUE(other.ok()) << other.status();
  const DataSet data = ToyData(toy, 4);
  auto batcher = Batcher::Create(data, 4, 5, true);
  std::vector<float> losses;
  const int64_t live = driver.live();
  for (int round = 0; round < 3; ++round) {
    for (Program* program : {large->get(), other->get()}) {
      auto loss = program->Step({.step = round + 1}, (*batcher)->Batch(0));
      ASSERT_TRUE(loss.ok()) << loss.status();
      losses.push_back(*loss);
    }
  }
  EXPECT_EQ(losses, std::vector<float>(6, losses[0]));  // a rate of zero
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
  EXPECT_EQ(*run, OnCpu(toy));
  EXPECT_EQ(driver.calls("BeginCapture"), 0);
  ASSERT_EQ(device->trace().size(), plan.steps.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_GT(device->trace()[s].start_ns, 0);
    EXPECT_GT(device->trace()[s].end_ns, device->trace()[s].start_ns);
    for (planner::StepId wait : plan.steps[s].wait) {
      EXPECT_GE(device->trace()[s].start_ns,
                device->trace()[planner::Index(wait)].end_ns);
    }
  }
}

// Every call to the driver fails once: the error arrives with its name, the
// program says that it is broken, and nothing stays behind.
TEST(CudaDevice, AnErrorAtAnyCallIsToldAndLeaksNothing) {
  const Toy toy =
      MakeToy({.depth = 4, .width = 4, .more_workspace_bytes = kCanaryBytes});
  const planner::Plan plan = OffloadPlan(toy);
  enum Mode { kPlain, kTraced, kStressed };
  const auto all = [&](FakeCudaDriver& driver,
                       Mode mode) -> absl::StatusOr<Outcome> {
    LOADLINE_ASSIGN_OR_RETURN(
        std::unique_ptr<Device> device,
        CudaDevice::Create(driver,
                           {.prepare = OnStreams(driver, PrepareToyKernel)}));
    if (mode == kStressed) {
      device = std::make_unique<StressDevice>(
          std::move(device), StressOptions{.most_delay_ns = 0});
    }
    return TrainToy(toy, plan, *device,
                    {.poison = mode == kStressed, .trace = mode == kTraced});
  };
  for (Mode mode : {kPlain, kTraced, kStressed}) {
    FakeCudaDriver sound;
    ASSERT_TRUE(all(sound, mode).ok());
    ASSERT_GT(sound.calls(), 100);
    for (int64_t fail = 0; fail < sound.calls(); ++fail) {
      FakeCudaDriver driver({.fail_call = fail});
      const auto run = all(driver, mode);
      if (run.ok()) {
        // Only a call on the way out, whose error nobody waits for.
        EXPECT_GE(fail, sound.calls() - 6);
      } else {
        EXPECT_TRUE(absl::StrContains(run.status().message(), "injected"))
            << fail << ": " << run.status();
      }
      EXPECT_EQ(driver.live(), 0) << fail;
    }
  }
}

TEST(CudaDevice, GoesOnAfterAFailedStepOfAnotherProgram) {
  const Toy toy = MakeToy({.depth = 4, .width = 4});
  FakeCudaDriver counting;
  {
    const auto device = ToyCudaDevice(counting);
    ASSERT_TRUE(Load(toy.graph, toy.problem, KeepPlan(toy), *device).ok());
  }
  // Some call inside the first step.
  FakeCudaDriver driver({.fail_call = counting.calls() + 12});
  const auto device = ToyCudaDevice(driver);
  EXPECT_FALSE(TrainToy(toy, KeepPlan(toy), *device).ok());
  const auto run = TrainToy(toy, KeepPlan(toy), *device);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, OnCpu(toy));
}

TEST(CudaDevice, SaysWhereMemoryIsShort) {
  FakeCudaDriver driver({.memory_bytes = 1000});
  const auto device = ToyCudaDevice(driver);
  EXPECT_EQ(device->CreateArena({.arena_bytes = 2000}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(device->has_arena());
  EXPECT_TRUE(device->CreateArena({.arena_bytes = 500}).ok());
  EXPECT_EQ(device->CreateArena({.arena_bytes = 500}).code(),
            absl::StatusCode::kFailedPrecondition);
}

// A kernel that does nothing, or finds fault with its data.
class Check : public Kernel {
 public:
  explicit Check(bool fails) : fails_(fails) {}
  absl::Status Run(const KernelArgs&) override {
    return fails_ ? absl::OutOfRangeError("bad index") : absl::OkStatus();
  }

 private:
  bool fails_;
};

std::unique_ptr<Kernel> CheckOnStream(FakeCudaDriver& driver, bool fails) {
  const auto prepare =
      OnStreams(driver, [fails](const models::Graph&, const models::Node&) {
        return std::make_unique<Check>(fails);
      });
  return *prepare(models::Graph(), models::Node());
}

TEST(CudaDevice, TellsTheFirstErrorThatDataCausedAtEveryReplay) {
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  ASSERT_TRUE(device->CreateArena({.arena_bytes = 64, .max_operands = 1}).ok());
  const auto good = CheckOnStream(driver, false);
  const auto bad = CheckOnStream(driver, true);
  const StepScalars scalars;
  ASSERT_TRUE(device->BeginStep().ok());
  for (Kernel* kernel : {good.get(), bad.get()}) {
    ASSERT_TRUE(device->Launch({.kernel = kernel, .scalars = &scalars}).ok());
  }
  EXPECT_EQ(device->Synchronize(), absl::OutOfRangeError("bad index"));
  const CapturedStep step = device->Capture();
  ASSERT_NE(step, kNotCaptured);
  ASSERT_TRUE(*device->Replay(step));
  EXPECT_EQ(device->Synchronize(), absl::OutOfRangeError("bad index"));
  // A step without the bad kernel, and one without any.
  ASSERT_TRUE(device->BeginStep().ok());
  ASSERT_TRUE(device->Launch({.kernel = good.get(), .scalars = &scalars}).ok());
  EXPECT_TRUE(device->Synchronize().ok());
  ASSERT_TRUE(device->BeginStep().ok());
  EXPECT_TRUE(device->Synchronize().ok());
  device->Forget(step);
  EXPECT_FALSE(*device->Replay(step));
}

TEST(CudaDevice, RefusesEveryAccessOutsideTheArenaBeforeItIsEnqueued) {
  FakeCudaDriver driver;
  const auto device = ToyCudaDevice(driver);
  ASSERT_TRUE(device
                  ->CreateArena({.arena_bytes = 1024,
                                 .host_bytes = 512,
                                 .event_count = 2,
                                 .max_operands = 1})
                  .ok());
  ASSERT_TRUE(device->BeginStep().ok());
  const auto kernel = CheckOnStream(driver, false);
  const StepScalars scalars;
  const auto launch = [&](Region in, Region out) {
    return device
        ->Launch({.kernel = kernel.get(),
                  .inputs = {&in, 1},
                  .outputs = {&out, 1},
                  .scalars = &scalars})
        .code();
  };
  constexpr auto kOut = absl::StatusCode::kOutOfRange;
  EXPECT_EQ(launch({0, 8}, {1016, 8}), absl::StatusCode::kOk);
  const int64_t calls = driver.calls();
  EXPECT_EQ(launch({0, 8}, {1017, 8}), kOut);
  EXPECT_EQ(launch({INT64_MAX - 3, 8}, {0, 8}), kOut);
  EXPECT_EQ(device->Fill(Lane::kCompute, Space::kDevice, {1000, 25}, 0).code(),
            kOut);
  EXPECT_EQ(device->Fill(Lane::kD2h, Space::kHost, {512, 1}, 0).code(), kOut);
  EXPECT_EQ(device->Check({.region = {1000, 25}}).code(), kOut);
  EXPECT_EQ(device->Copy({.device_offset = 1000, .bytes = 100}).code(), kOut);
  EXPECT_EQ(device->Copy({.host_offset = 500, .bytes = 100}).code(), kOut);
  EXPECT_EQ(device->Record(Lane::kD2h, EventId{2}).code(), kOut);
  EXPECT_EQ(device->Wait(Lane::kH2d, EventId{-1}).code(), kOut);
  // CUDA would take this for an event that has happened.
  EXPECT_EQ(device->Wait(Lane::kH2d, EventId{1}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(driver.calls(), calls);
  EXPECT_TRUE(device->Synchronize().ok());
  uint8_t byte = 0;
  EXPECT_EQ(device->Write(Space::kDevice, 1024, &byte, 1).code(), kOut);
  EXPECT_EQ(device->Read(Space::kHost, 512, &byte, 1).code(), kOut);
}

// That the fake driver would notice: without the wait, some order gives other
// bytes.
TEST(FakeCudaDriver, ShowsAMissingWait) {
  for (bool wait : {true, false}) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      FakeCudaDriver driver({.seed = seed});
      const auto device = ToyCudaDevice(driver);
      ASSERT_TRUE(device
                      ->CreateArena(
                          {.arena_bytes = 8, .host_bytes = 8, .event_count = 1})
                      .ok());
      ASSERT_TRUE(device->BeginStep().ok());
      ASSERT_TRUE(device->Fill(Lane::kCompute, Space::kDevice, {0, 8}, 7).ok());
      ASSERT_TRUE(device->Record(Lane::kCompute, EventId{0}).ok());
      if (wait) {
        ASSERT_TRUE(device->Wait(Lane::kD2h, EventId{0}).ok());
      }
      ASSERT_TRUE(device->Copy({.lane = Lane::kD2h, .bytes = 8}).ok());
      ASSERT_TRUE(device->Synchronize().ok());
      uint8_t byte = 0;
      ASSERT_TRUE(device->Read(Space::kHost, 0, &byte, 1).ok());
      wrong += byte == 7 ? 0 : 1;
    }
    EXPECT_EQ(wrong > 0, !wait);
  }
}

}  // namespace
}  // namespace loadline::executor
