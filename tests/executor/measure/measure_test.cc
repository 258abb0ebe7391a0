// Measurements: every figure exists and is plausible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/cpu/measure_machine.h"
#include "executor/cuda/device.h"
#include "executor/device/algorithms.h"
#include "executor/measure/calibrate.h"
#include "executor/measure/calibrate_step.h"
#include "executor/measure/copy_benchmark.h"
#include "executor/measure/resident_memory.h"
#include "executor/measure/step_times.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/sanitizers.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(MeasureMachine, FillsTheProfile) {
  const auto machine = MeasureMachine({.buffer_bytes = 1 << 22, .meter_ns = 0});
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_TRUE(machine->CanCopy());
  EXPECT_GT(machine->d2h.bytes_per_s, 1e7);
  EXPECT_GT(machine->h2d.bytes_per_s, 1e7);
  EXPECT_GT(machine->d2h_h2d_factor, 0);
  EXPECT_LE(machine->d2h_h2d_factor, 1);
  EXPECT_GT(machine->d2h.latency_ns, 0);
  EXPECT_GT(machine->device_bytes, 1 << 20);
  ASSERT_TRUE(machine->rates.has_value());
  EXPECT_GT(machine->rates->matmul_flop_per_s.at("f32"), 1e7);
  EXPECT_GT(machine->rates->memory_bytes_per_s, 1e7);
  EXPECT_GT(machine->rates->launch_ns, 0);
  const auto json = planner::MachineToJson(*machine);
  EXPECT_TRUE(planner::MachineFromJson(json).ok());
}

TEST(BufferBytesWithin, LeavesRoomForAllBuffers) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_EQ(BufferBytesWithin(std::numeric_limits<int64_t>::max()),
            kWantedBufferBytes);
  EXPECT_EQ(BufferBytesWithin(332 * kMiB), 64 * kMiB);
  EXPECT_EQ(BufferBytesWithin(332 * kMiB - 5), 64 * kMiB - 1);
  EXPECT_EQ(BufferBytesWithin(62 * kMiB), 10 * kMiB);
  EXPECT_EQ(BufferBytesWithin(0), kMiB);
}

// By the kernel's count, which includes what libraries allocate.
TEST(MeasureMachine, TakesNoMoreThanItsBuffers) {
  if (SanitizersKeepMemory()) GTEST_SKIP() << "under a sanitizer";
  constexpr int64_t kMostBytes = int64_t{112} << 20;
  ReleaseFreedMemory();
  const int64_t before = PeakResidentBytes();
  const auto machine =
      MeasureMachine({.make_store = FileStoreAt(testing::TempDir()),
                      .buffer_bytes = BufferBytesWithin(kMostBytes),
                      .meter_ns = 0});
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_LT(PeakResidentBytes() - before, kMostBytes + kMostBytes / 4);
}

TEST(HiddenShare, IsWhatBothTogetherSaveOfTheShorter) {
  EXPECT_EQ(HiddenShare(100, 40, 100), 1);  // copies overlap completely
  EXPECT_EQ(HiddenShare(100, 40, 140), 0);  // one after the other
  EXPECT_EQ(HiddenShare(40, 100, 120), 0.5);
  EXPECT_EQ(HiddenShare(100, 40, 90), 1);  // measurement noise
  EXPECT_EQ(HiddenShare(100, 40, 150), 0);
  EXPECT_EQ(HiddenShare(100, 0, 100), 1);
}

TEST(Calibrate, StaysWithinItsBytes) {
  const Toy toy = MakeToy();
  CpuDevice all(ToyDevice());
  ASSERT_TRUE(Calibrate(toy.graph, all, {.evict_bytes = 0}).ok());
  const int64_t largest_bytes = all.arena().arena_bytes;
  CpuDevice same(ToyDevice());
  const auto every = Calibrate(toy.graph, same, {.most_bytes = largest_bytes});
  ASSERT_TRUE(every.ok()) << every.status();
  EXPECT_EQ(every->size(), 5u);
  EXPECT_EQ(same.arena().arena_bytes, largest_bytes);
  CpuDevice less(ToyDevice());
  const auto some =
      Calibrate(toy.graph, less, {.most_bytes = largest_bytes - 1});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_LT(some->size(), 5u);
  EXPECT_FALSE(some->empty());
  EXPECT_LT(less.arena().arena_bytes, largest_bytes);
  CpuDevice none(ToyDevice());
  EXPECT_TRUE(Calibrate(toy.graph, none, {.most_bytes = 1})->empty());
}

TEST(Calibrate, MeasuresEachDistinctOperatorOnce) {
  const Toy toy = MakeToy();
  CpuDevice device(ToyDevice());
  int64_t reported = 0;
  const auto ops =
      Calibrate(toy.graph, device,
                {.evict_bytes = 1 << 20,
                 .progress = [&](int64_t, int64_t) { ++reported; }});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ(ops->size(), 5u);  // ToyMul, Loss, Count, MulGrad, Sgd
  EXPECT_EQ(reported, 5);
  for (const models::Node& node : toy.graph.nodes) {
    EXPECT_GT(ops->at(models::OperatorKey(toy.graph, node)), 0);
  }
}

// One of several algorithms, each with its own time and workspace.
class TimedKernel final : public Kernel {
 public:
  TimedKernel(FakeCudaDriver& driver, std::unique_ptr<Kernel> kernel,
              const std::string& algorithm)
      : driver_(driver),
        kernel_(std::move(kernel)),
        fast_(algorithm == "fast" || algorithm == "as fast") {}

  int64_t workspace_bytes() const override { return fast_ ? 128 : 64; }
  std::vector<std::string> algorithms() const override {
    return {"slow", "fast", "broken", "as fast"};
  }
  absl::Status Run(const KernelArgs& args) override {
    driver_.Spend(fast_ ? 1000 : 2000);
    return kernel_->Run(args);
  }

 private:
  FakeCudaDriver& driver_;
  std::unique_ptr<Kernel> kernel_;
  bool fast_;
};

class SlowKernel final : public Kernel {
 public:
  static constexpr int64_t kNs = 3'600'000'000'000;
  SlowKernel(FakeCudaDriver& driver, std::unique_ptr<Kernel> kernel)
      : driver_(driver), kernel_(std::move(kernel)) {}
  int64_t workspace_bytes() const override {
    return kernel_->workspace_bytes();
  }
  absl::Status Run(const KernelArgs& args) override {
    driver_.Spend(kNs);
    return kernel_->Run(args);
  }

 private:
  FakeCudaDriver& driver_;
  std::unique_ptr<Kernel> kernel_;
};

// A device on which every ToyMul offers algorithms.
absl::StatusOr<std::unique_ptr<Device>> DeviceWithAlgorithms(
    FakeCudaDriver& driver) {
  const auto prepare =
      [&driver](
          const models::Graph& graph,
          const models::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    auto kernel = PrepareToyKernel(graph, node);
    if (!kernel.ok() || node.op != "ToyMul") return kernel;
    const std::string name = node.attributes.String(kAlgorithmAttribute, "");
    if (name == "broken") return absl::UnimplementedError("not here");
    return std::make_unique<TimedKernel>(driver, *std::move(kernel), name);
  };
  return CudaDevice::Create(driver, {.prepare = OnStreams(driver, prepare)});
}

TEST(ChooseAlgorithms, FindsTheFastestAndTheDeviceTakesIt) {
  const Toy toy = MakeToy();
  const auto mul = std::find_if(
      toy.graph.nodes.begin(), toy.graph.nodes.end(),
      [](const models::Node& node) { return node.op == "ToyMul"; });
  FakeCudaDriver driver;
  const auto algorithms =
      ChooseAlgorithms(toy.graph, [&] { return DeviceWithAlgorithms(driver); },
                       {.evict_bytes = 0});
  ASSERT_TRUE(algorithms.ok()) << algorithms.status();
  EXPECT_THAT(*algorithms, testing::ElementsAre(testing::Pair(
                               models::OperatorKey(toy.graph, *mul), "fast")));

  EXPECT_EQ(driver.live(), 0);

  const auto device = DeviceWithAlgorithms(driver);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto workspace_bytes = [&] {
    return (*(*device)->Prepare(toy.graph, *mul))->workspace_bytes();
  };
  EXPECT_EQ(workspace_bytes(), 64);
  (*device)->SetAlgorithms(*algorithms);
  EXPECT_EQ(workspace_bytes(), 128);
  (*device)->SetAlgorithms({});
  EXPECT_EQ(workspace_bytes(), 64);
}

TEST(ChooseAlgorithms, PreparesNoKernelWhereThereIsNoChoice) {
  const Toy toy = MakeToy();
  int prepared = 0;
  const auto algorithms = ChooseAlgorithms(
      toy.graph, [&]() -> absl::StatusOr<std::unique_ptr<Device>> {
        CpuDeviceOptions options = ToyDevice();
        options.prepare = [&](const models::Graph& graph,
                              const models::Node& node) {
          ++prepared;
          return PrepareToyKernel(graph, node);
        };
        return std::make_unique<CpuDevice>(options);
      });
  ASSERT_TRUE(algorithms.ok()) << algorithms.status();
  EXPECT_TRUE(algorithms->empty());
  EXPECT_EQ(prepared, 0);
}

TEST(CalibrateStep, MeasuresEveryOperatorOfThePlan) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device(ToyDevice());
  std::vector<int64_t> reported;
  const auto ops =
      CalibrateStep(toy.graph, toy.problem, plan, device,
                    {.runs = 3, .progress = [&](int64_t done, int64_t of) {
                       reported.push_back(done);
                       EXPECT_EQ(of, 3);
                     }});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ(reported, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(ops->size(), 5u);
  for (const models::Node& node : toy.graph.nodes) {
    EXPECT_GT(ops->at(models::OperatorKey(toy.graph, node)), 0);
  }
}

TEST(StepTimes, AreMediansByOperatorAndByLane) {
  const Toy toy = MakeToy();
  const planner::Plan plan = OffloadPlan(toy);
  StepTimes times(toy.graph, toy.problem, plan);
  EXPECT_TRUE(times.Operators().empty());
  EXPECT_EQ(times.CopyNs(Lane::kD2h), 0);
  int64_t d2h = 0;
  for (int64_t run : {3, 1, 2}) {
    d2h = 0;
    std::vector<TraceSpan> spans;
    for (const planner::Step& step : plan.steps) {
      const bool copy = step.kind == planner::StepKind::kCopy;
      const int64_t ns = copy ? 10 * run : 100 * run;
      spans.push_back({1000, 1000 + ns});
      if (step.lane == Lane::kD2h) ++d2h;
    }
    times.Add(spans);
  }
  EXPECT_EQ(times.CopyNs(Lane::kD2h), d2h * 20);
  const auto ops = times.Operators();
  EXPECT_EQ(ops.size(), 5u);
  for (const auto& [key, ns] : ops) EXPECT_EQ(ns, 200) << key;
}

TEST(StepTimes, TakeFromEachLaunchWhatAllHaveTooMuch) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  StepTimes times(toy.graph, toy.problem, plan);
  std::vector<TraceSpan> spans;
  int64_t sum_ns = 0;
  std::map<std::string, int64_t> traced;
  for (const planner::Step& step : plan.steps) {
    const auto id =
        static_cast<models::NodeId>(toy.problem.node(step.node).file_id);
    // All launches of one operator have the same time.
    const auto [at, _] =
        traced.emplace(models::OperatorKey(toy.graph, toy.graph.node(id)),
                       2000 + 1000 * static_cast<int64_t>(traced.size()));
    spans.push_back({0, at->second});
    sum_ns += at->second;
  }
  times.Add(spans);
  const auto count = static_cast<int64_t>(spans.size());
  const auto all = [&](int64_t launches_ns, int64_t change_ns) {
    for (const auto& [key, ns] : times.OperatorsWithin(launches_ns)) {
      EXPECT_EQ(ns, traced[key] + change_ns) << launches_ns;
    }
  };
  all(sum_ns, 0);
  all(sum_ns - 1500 * count, -1500);
  all(sum_ns + 700 * count, 700);
  // No launch becomes free, however short the step.
  for (const auto& [key, ns] : times.OperatorsWithin(1)) {
    EXPECT_EQ(ns, kShortestLaunchNs) << key;
  }
}

// The launches of a replayed step together take the step's time, independent of
// their times in the trace.
TEST(CalibrateStep, FitsTheStepThatIsReplayedOnADevice) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  FakeCudaDriver driver;
  const auto prepare =
      [&driver](
          const models::Graph& graph,
          const models::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    LOADLINE_ASSIGN_OR_RETURN(auto kernel, PrepareToyKernel(graph, node));
    // An hour on the fake's clock, almost nothing on the host's.
    return std::make_unique<SlowKernel>(driver, std::move(kernel));
  };
  const auto device =
      CudaDevice::Create(driver, {.prepare = OnStreams(driver, prepare)});
  ASSERT_TRUE(device.ok()) << device.status();
  const auto ops = CalibrateStep(toy.graph, toy.problem, plan, **device);
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ(ops->size(), 5u);
  for (const auto& [key, ns] : *ops) {
    EXPECT_GT(ns, 0);
    EXPECT_LT(ns, SlowKernel::kNs / 2);
  }
}

TEST(CalibrateStep, StopsWhenAsked) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device(ToyDevice());
  const std::atomic<bool> stop{true};
  EXPECT_EQ(CalibrateStep(toy.graph, toy.problem, plan, device, {.stop = &stop})
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

TEST(Calibrate, StopsWhenAsked) {
  const Toy toy = MakeToy();
  CpuDevice device(ToyDevice());
  const std::atomic<bool> stop{true};
  EXPECT_EQ(Calibrate(toy.graph, device, {.stop = &stop}).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace loadline::executor
