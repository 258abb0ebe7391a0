// Errors of the CUDA device, on a driver without a GPU: every one is reported
// and none leaks.
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/match.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_device.h"
#include "executor/program/program.h"
#include "planner/base/status_macros.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"
#include "tests/executor/support/toy_cuda.h"

namespace loadline::executor {
namespace {

// Every call to the driver fails once: the error arrives with its name, the
// program says that it is broken, and everything is freed.
TEST(CudaDevice, AnErrorAtAnyCallIsToldAndLeaksNothing) {
  const Toy toy =
      MakeToy({.depth = 4, .width = 4, .more_workspace_bytes = kCanaryBytes});
  const planner::Plan plan = OffloadPlan(toy);
  enum Mode { kPlain, kTraced, kStressed };
  const auto all = [&](FakeCudaDriver& driver,
                       Mode mode) -> absl::StatusOr<ToyOutcome> {
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
        // Only a call of the clean-up, whose error is ignored.
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
  // A call within the first step.
  FakeCudaDriver driver({.fail_call = counting.calls() + 12});
  const auto device = ToyCudaDevice(driver);
  EXPECT_FALSE(TrainToy(toy, KeepPlan(toy), *device).ok());
  const auto run = TrainToy(toy, KeepPlan(toy), *device);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*run, TrainToyOnCpu(toy));
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

// A kernel that does nothing, or reports bad data.
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
  // A step without the bad kernel, and an empty one.
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
  // CUDA would treat this event as having happened.
  EXPECT_EQ(device->Wait(Lane::kH2d, EventId{1}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(driver.calls(), calls);
  EXPECT_TRUE(device->Synchronize().ok());
  uint8_t byte = 0;
  EXPECT_EQ(device->Write(Space::kDevice, 1024, &byte, 1).code(), kOut);
  EXPECT_EQ(device->Read(Space::kHost, 512, &byte, 1).code(), kOut);
}

}  // namespace
}  // namespace loadline::executor
