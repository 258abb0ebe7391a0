// Whole models train on the CUDA device without a GPU: the fake driver runs its
// work late and in any order that events allow. With the CPU's kernels, losses
// and weights must equal the CPU's bit for bit, for every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "executor/cpu/device.h"
#include "executor/cpu/kernels.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_device.h"
#include "tests/cuda_emulator/kernels.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/gpu/zoo_training.h"

namespace loadline {
namespace {

using executor::CudaDevice;
using executor::FakeCudaDriver;

class CudaTraining : public testing::TestWithParam<const char*> {};

TEST_P(CudaTraining, HasTheCpusBitsAtEveryBudget) {
  const std::string family = GetParam();
  executor::CpuDevice cpu;
  const ZooRun keep = {.family = family, .batch = 4, .steps = 3};
  const auto expected = TrainZoo(keep, cpu);
  ASSERT_TRUE(expected.ok()) << expected.status();
  int64_t copied = 0;
  int64_t recomputed = 0;
  uint64_t seed = 0;
  // Which of the two ways a plan frees memory is the search's choice. Without
  // copies it has to recompute.
  const std::vector<std::pair<std::string, bool>> cases = {
      {"", false}, {"75%", false}, {"smallest", false}, {"smallest", true}};
  for (const auto& [budget, no_offload] : cases) {
    ZooRun run = keep;
    run.budget = budget;
    run.no_offload = no_offload;
    run.poison = seed == 1;
    FakeCudaDriver driver({.seed = ++seed, .copy_engines = seed == 3 ? 1 : 2});
    {
      auto made = CudaDevice::Create(
          driver,
          {.prepare = executor::OnStreams(driver, executor::PrepareCpuKernel)});
      ASSERT_TRUE(made.ok()) << made.status();
      std::unique_ptr<executor::Device> device = std::move(made).value();
      if (run.poison) {
        device = std::make_unique<executor::StressDevice>(
            std::move(device), executor::StressOptions{.seed = seed});
      }
      const auto outcome = TrainZoo(run, *device);
      ASSERT_TRUE(outcome.ok()) << budget << ": " << outcome.status();
      EXPECT_EQ(outcome->losses, expected->losses) << budget;
      EXPECT_EQ(outcome->weights_sha256, expected->weights_sha256) << budget;
      EXPECT_EQ(outcome->arena_bytes, outcome->planned_bytes);
      EXPECT_EQ(driver.allocated().front(), outcome->planned_bytes);
      EXPECT_EQ(outcome->device_bytes,
                outcome->planned_bytes + CudaDevice::kControlBytes);
      copied += outcome->copied_bytes;
      recomputed += outcome->recompute_ns;
    }
    EXPECT_EQ(driver.calls("BeginCapture"), 1);
    EXPECT_EQ(driver.calls("LaunchGraph"), run.steps);
    EXPECT_EQ(driver.live(), 0);
  }
  EXPECT_GT(copied, 0);
  // Activations make up most of GPT's peak. In the others weights and the
  // workspaces of this processor's kernels do, and recomputation may not help.
  EXPECT_TRUE(recomputed > 0 || family != "gpt");
}

// With the GPU's kernels, emulated, and plain loops instead of its libraries:
// losses equal the CPU's up to the order of sums, with the same bits for every
// plan.
//
// ResNet is left out. It takes a minute and a half, and one step with so small
// a batch proves nothing: its last stage has images of one pixel, so two
// examples are always normalized to plus and minus one, and the gradient
// consists of rounding errors. After one step of AdamW on two examples its loss
// is 1.13613 in f64 (PyTorch), 1.13654 with these kernels, 1.13590 with
// PyTorch's in f32 and 1.13779 with the CPU's; the gradients' median error
// against f64 is 4e-5, 5e-5 and 1e-4. With 16 examples PyTorch's is 1e-6.
TEST_P(CudaTraining, SlowHasTheCpusLossesWithTheGpusKernels) {
  const std::string family = GetParam();
  if (family == "resnet18") GTEST_SKIP() << "plain convolutions take too long";
  ZooRun run = {.family = family, .batch = 1, .steps = 2};
  executor::CpuDevice cpu;
  const auto expected = TrainZoo(run, cpu);
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::string weights;
  for (const char* budget : {"", "smallest"}) {
    run.budget = budget;
    FakeCudaDriver driver({.seed = 9});
    auto device = CudaDevice::Create(
        driver,
        {.prepare = executor::OnStreams(driver, cuda_emulator::PrepareKernel)});
    ASSERT_TRUE(device.ok()) << device.status();
    const auto outcome = TrainZoo(run, **device);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    for (size_t i = 0; i < outcome->losses.size(); ++i) {
      EXPECT_NEAR(outcome->losses[i], expected->losses[i],
                  1e-4 * expected->losses[i]);
    }
    if (weights.empty()) {
      weights = outcome->weights_sha256;
      // All updates are merged into one launch.
      EXPECT_TRUE(std::any_of(driver.ranged().begin(), driver.ranged().end(),
                              [](const std::string& call) {
                                return absl::EndsWith(call, " more: Kernel");
                              }));
    }
    EXPECT_EQ(outcome->weights_sha256, weights);
  }
}

// The parts of a batch, with the CPU's kernels and with the GPU's.
TEST(CudaMicroBatches, HaveTheCpusBitsAndLosses) {
  for (const char* family : {"mlp", "gpt"}) {
    ZooRun run = {.family = family, .batch = 4, .steps = 2, .micro_batches = 2};
    executor::CpuDevice cpu;
    const auto expected = TrainZoo(run, cpu);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const char* budget : {"", "smallest"}) {
      run.budget = budget;
      FakeCudaDriver driver({.seed = 3});
      auto device = CudaDevice::Create(
          driver,
          {.prepare = executor::OnStreams(driver, executor::PrepareCpuKernel)});
      ASSERT_TRUE(device.ok()) << device.status();
      const auto outcome = TrainZoo(run, **device);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_EQ(outcome->losses, expected->losses);
      EXPECT_EQ(outcome->weights_sha256, expected->weights_sha256);
    }
  }
}

// MLP only: it has dropout, whose masks depend on the part.
TEST(CudaMicroBatches, HaveTheCpusLossesWithTheGpusKernels) {
  const ZooRun run = {
      .family = "mlp", .batch = 6, .steps = 2, .micro_batches = 3};
  executor::CpuDevice cpu;
  const auto expected = TrainZoo(run, cpu);
  ASSERT_TRUE(expected.ok()) << expected.status();
  FakeCudaDriver driver({.seed = 9});
  auto device = CudaDevice::Create(
      driver,
      {.prepare = executor::OnStreams(driver, cuda_emulator::PrepareKernel)});
  ASSERT_TRUE(device.ok()) << device.status();
  const auto outcome = TrainZoo(run, **device);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  for (size_t i = 0; i < outcome->losses.size(); ++i) {
    EXPECT_NEAR(outcome->losses[i], expected->losses[i],
                1e-5 * expected->losses[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, CudaTraining,
                         testing::Values("mlp", "gpt", "resnet18"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace loadline
