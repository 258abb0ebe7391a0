// The zoo trains on the GPU with the CPU's losses, and with the same weights
// for every plan.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "executor/cpu/device.h"
#include "executor/cuda/make_device.h"
#include "executor/device/stress_device.h"
#include "planner/base/status_macros.h"
#include "tests/gpu/zoo_training.h"

namespace loadline {
namespace {

class GpuTraining : public testing::TestWithParam<const char*> {};

absl::StatusOr<ZooOutcome> OnGpu(const ZooRun& run) {
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<executor::Device> device,
                            executor::MakeCudaDevice());
  if (run.poison) {
    device = std::make_unique<executor::StressDevice>(
        std::move(device), executor::StressOptions{.seed = 1});
  }
  return TrainZoo(run, *device);
}

// Differences in rounding grow as fast as training is unstable, and AdamW's
// first steps move a parameter whose gradient is only rounding error as far as
// any other. Over 20 steps PyTorch's ResNet-18 in f32 deviates from itself in
// f64 by up to 9e-3 of the loss with 16 images a step at a learning rate of
// 1e-3, by 1e-4 with 32 images at 1e-4, and by 2e-6 with 32 images at 1e-5.
TEST_P(GpuTraining, HasTheCpusFirst20Losses) {
  const bool unsteady = std::string(GetParam()) == "resnet18";
  const ZooRun run = {.family = GetParam(),
                      .batch = unsteady ? 32 : 16,
                      .steps = 20,
                      .learning_rate = unsteady ? 1e-5f : 1e-3f};
  executor::CpuDevice cpu;
  const auto expected = TrainZoo(run, cpu);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto got = OnGpu(run);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->losses.size(), expected->losses.size());
  for (size_t i = 0; i < got->losses.size(); ++i) {
    EXPECT_NEAR(got->losses[i], expected->losses[i],
                1e-4 * std::abs(expected->losses[i]))
        << "step " << i + 1;
  }
}

TEST_P(GpuTraining, HasTheSameWeightsWhateverThePlan) {
  const ZooRun keep = {.family = GetParam(), .batch = 16, .steps = 20};
  const auto expected = OnGpu(keep);
  ASSERT_TRUE(expected.ok()) << expected.status();
  int64_t copied = 0;
  const auto check = [&](ZooRun run) {
    const auto got = OnGpu(run);
    // A budget below the smallest feasible one cannot be met.
    if (got.status().code() == absl::StatusCode::kOutOfRange ||
        got.status().code() == absl::StatusCode::kResourceExhausted) {
      EXPECT_NE(run.budget, "smallest") << got.status();
      return;
    }
    ASSERT_TRUE(got.ok()) << run.budget << ": " << got.status();
    EXPECT_EQ(got->weights_sha256, expected->weights_sha256) << run.budget;
    EXPECT_EQ(got->arena_bytes, got->planned_bytes) << run.budget;
    copied += got->copied_bytes;
  };
  for (const char* budget : {"75%", "50%", "35%", "smallest"}) {
    for (bool poison : {false, true}) {
      ZooRun run = keep;
      run.budget = budget;
      run.poison = poison;
      check(run);
      run.no_offload = true;
      check(run);
      run.no_offload = false;
      run.no_recompute = true;
      check(run);
    }
  }
  EXPECT_GT(copied, 0);
}

INSTANTIATE_TEST_SUITE_P(Zoo, GpuTraining,
                         testing::Values("mlp", "gpt", "resnet18"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace loadline
