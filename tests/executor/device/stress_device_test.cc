// Under stress a valid plan gives the same bits on every device, a plan without
// one of its waits does not, and a kernel that writes too far is named.
#include "executor/device/stress_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_commands.h"
#include "executor/fake/fake_device.h"
#include "executor/program/program.h"
#include "planner/base/status_macros.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using Weights = std::vector<std::vector<std::byte>>;

constexpr int64_t kSteps = 3;
constexpr int64_t kShortDelayNs = 100'000;

Toy GuardedToy(int depth = 6) {
  return MakeToy({.depth = depth, .more_workspace_bytes = kCanaryBytes});
}

absl::StatusOr<Weights> TrainStressed(const Toy& toy, const planner::Plan& plan,
                                      Device& device, bool poison = true) {
  LOADLINE_ASSIGN_OR_RETURN(auto program, Load(toy.graph, toy.problem, plan,
                                               device, {.poison = poison}));
  const DataSet data = ToyData(toy, 40);
  LOADLINE_ASSIGN_OR_RETURN(auto batcher,
                            Batcher::Create(data, toy.options.batch, 5, true));
  for (int64_t step = 0; step < kSteps; ++step) {
    LOADLINE_RETURN_IF_ERROR(
        program
            ->Step({.learning_rate = 0.05f, .step = step + 1, .seed = 1},
                   batcher->Batch(step).value())
            .status());
  }
  return AllWeights(*program);
}

Weights Undisturbed(const Toy& toy) {
  CpuDevice device(ToyDevice());
  auto weights = TrainStressed(toy, KeepPlan(toy), device, /*poison=*/false);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return *weights;
}

std::unique_ptr<Device> CudaOn(FakeCudaDriver& driver, bool graph,
                               PrepareFunction prepare = PrepareToyKernel) {
  auto device = CudaDevice::Create(
      driver,
      {.graph = graph, .prepare = OnStreams(driver, std::move(prepare))});
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

// Omits the compute lane's waits for copies.
class Hasty final : public StressDevice {
 public:
  using StressDevice::StressDevice;
  absl::Status Wait(Lane lane, EventId event) override {
    return lane == Lane::kCompute ? absl::OkStatus()
                                  : StressDevice::Wait(lane, event);
  }
};

TEST(StressDevice, HandsTheChoiceOfAlgorithmsOn) {
  struct Chooser : CpuDevice {
    using CpuDevice::CpuDevice;
    void SetAlgorithms(Algorithms algorithms) override { chosen = algorithms; }
    Algorithms chosen;
  };
  auto chooser = std::make_unique<Chooser>(ToyDevice());
  const Chooser& inner = *chooser;
  StressDevice device(std::move(chooser), {});
  device.SetAlgorithms({{"MatMul", "fast"}});
  EXPECT_EQ(inner.chosen, (Algorithms{{"MatMul", "fast"}}));
}

TEST(DelayNs, IsNoneHalfTheTimeAndElseOfEverySize) {
  int none = 0;
  int shorter = 0;
  for (uint64_t turn = 0; turn < 1000; ++turn) {
    const DelayArgs args = {.seed = 7, .most_ns = 1'000'000, .turn = &turn};
    const int64_t ns = DelayNs(args);
    EXPECT_EQ(ns, DelayNs(args));
    ASSERT_GE(ns, 0);
    ASSERT_LE(ns, 1'000'000);
    if (ns == 0) ++none;
    if (ns > 0 && ns < 1000) ++shorter;
  }
  EXPECT_NEAR(none, 500, 50);
  EXPECT_NEAR(shorter, 250, 50);  // half of the sizes are below a thousandth
}

TEST(StressDevice, ChangesNoBitOnTheCpu) {
  const Toy toy = GuardedToy();
  const Weights expected = Undisturbed(toy);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const planner::Plan& plan : {KeepPlan(toy), OffloadPlan(toy)}) {
      StressDevice device(std::make_unique<CpuDevice>(ToyDevice()),
                          {seed, kShortDelayNs});
      const auto weights = TrainStressed(toy, plan, device);
      ASSERT_TRUE(weights.ok()) << weights.status();
      EXPECT_EQ(*weights, expected) << seed;
    }
  }
}

TEST(StressDevice, ChangesNoBitOnAGpuInReplaysEither) {
  const Toy toy = GuardedToy();
  const Weights expected = Undisturbed(toy);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const bool graph = seed % 2 == 0;
    FakeCudaDriver driver({.seed = seed, .copy_engines = seed > 4 ? 1 : 2});
    {
      StressDevice device(CudaOn(driver, graph), {seed, kShortDelayNs / 10});
      const auto weights = TrainStressed(toy, OffloadPlan(toy), device);
      ASSERT_TRUE(weights.ok()) << weights.status();
      EXPECT_EQ(*weights, expected) << seed;
    }
    EXPECT_GT(driver.calls("CallHost"), 0);
    EXPECT_EQ(driver.calls("LaunchGraph"), graph ? kSteps : 0);
    EXPECT_EQ(driver.live(), 0);
  }
}

TEST(StressDevice, MakesNoRaceAndLongerSteps) {
  const Toy toy = GuardedToy(9);
  int64_t total_ns = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    auto fake = std::make_unique<FakeDevice>(
        FakeDeviceOptions{.machine = *toy.problem.machine});
    FakeDevice& inner = *fake;
    StressDevice device(std::move(fake), {seed, kShortDelayNs});
    auto program = Load(toy.graph, toy.problem, OffloadPlan(toy), device,
                        {.poison = true});
    ASSERT_TRUE(program.ok()) << program.status();
    const DataSet data = ToyData(toy, toy.options.batch);
    const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                  data.columns[1].data.data()};
    const absl::Status status = (*program)->Run({}, inputs);
    ASSERT_TRUE(status.ok()) << status;
    total_ns += inner.step_ns();
  }
  EXPECT_GT(total_ns, 50 * 2 * OffloadPlan(toy).predicted.step_ns);
}

// The first seed that exposes the missing waits; -1: none does.
int64_t SeedThatShows(
    const Toy& toy, const Weights& expected,
    const std::function<std::unique_ptr<Device>(uint64_t)>& make) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Hasty device(make(seed), {seed, kShortDelayNs});
    const auto weights = TrainStressed(toy, OffloadPlan(toy), device);
    if (!weights.ok() || *weights != expected) {
      return static_cast<int64_t>(seed);
    }
  }
  return -1;
}

TEST(StressDevice, ShowsWaitsThatAreMissingOnTheCpu) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a race on purpose";
#endif
  const Toy toy = GuardedToy();
  EXPECT_GE(SeedThatShows(toy, Undisturbed(toy),
                          [](uint64_t) {
                            return std::make_unique<CpuDevice>(ToyDevice());
                          }),
            1);
}

TEST(StressDevice, ShowsWaitsThatAreMissingOnAGpu) {
  const Toy toy = GuardedToy();
  const Weights expected = Undisturbed(toy);
  std::vector<std::unique_ptr<FakeCudaDriver>> drivers;
  EXPECT_GE(SeedThatShows(toy, expected,
                          [&](uint64_t seed) {
                            drivers.push_back(std::make_unique<FakeCudaDriver>(
                                FakeCudaOptions{.seed = seed}));
                            return CudaOn(*drivers.back(), true);
                          }),
            1);
}

TEST(StressDevice, ShowsWaitsThatAreMissingOnASimulatedClock) {
  const Toy toy = GuardedToy();
  const auto races = [&](uint64_t seed) {
    Hasty device(std::make_unique<FakeDevice>(
                     FakeDeviceOptions{.machine = *toy.problem.machine}),
                 {seed, kShortDelayNs});
    const absl::Status status =
        TrainStressed(toy, OffloadPlan(toy), device).status();
    return absl::StrContains(status.message(), "race");
  };
  bool found = false;
  for (uint64_t seed = 1; seed <= 50 && !found; ++seed) found = races(seed);
  EXPECT_TRUE(found);
}

// From its second step on it writes three bytes past its workspace.
class Careless final : public Kernel {
 public:
  explicit Careless(std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)) {}
  int64_t workspace_bytes() const override {
    return kernel_->workspace_bytes();
  }
  absl::Status Run(const KernelArgs& args) override {
    if (args.scalars->step >= 2) {
      std::memset(args.workspace + workspace_bytes() + 5, 0x21, 3);
    }
    return kernel_->Run(args);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareCareless(
    const models::Graph& graph, const models::Node& node) {
  LOADLINE_ASSIGN_OR_RETURN(auto kernel, PrepareToyKernel(graph, node));
  if (kernel->workspace_bytes() == 0) return kernel;
  return std::make_unique<Careless>(std::move(kernel));
}

TEST(StressDevice, NamesWhoWritesBehindItsWorkspace) {
  const Toy toy = GuardedToy();
  const planner::Plan plan = KeepPlan(toy);
  int64_t workspace = -1;
  for (const planner::Buffer& buffer : plan.buffers) {
    if (buffer.value == planner::kNoValue) workspace = buffer.offset;
  }
  const int64_t canary = workspace + toy.options.width * 4;
  const std::string expected = absl::StrCat(
      "node ToyMulGrad-8 (ToyMulGrad) wrote outside its buffers: 3 of the 128 "
      "bytes at offset ",
      canary, " of the arena, the first at ", canary + 5, " (0x21)");
  const auto check = [&](std::unique_ptr<Device> inner, const char* where) {
    StressDevice device(std::move(inner), {.most_delay_ns = 0});
    const absl::Status status = TrainStressed(toy, plan, device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << where;
    EXPECT_EQ(std::string(status.message()), expected) << where;
  };
  check(
      std::make_unique<CpuDevice>(CpuDeviceOptions{.prepare = PrepareCareless}),
      "cpu");
  FakeCudaDriver driver;
  check(CudaOn(driver, true, PrepareCareless), "cuda");
}

TEST(StressDevice, RefusesAPlanWithoutRoomForItsCanaries) {
  const Toy toy = MakeToy();
  StressDevice device(std::make_unique<CpuDevice>(ToyDevice()), {});
  EXPECT_EQ(TrainStressed(toy, KeepPlan(toy), device).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace loadline::executor
