// The doctor of a GPU, with a fake driver and emulated kernels: the figures
// mean nothing, but all of them must exist, and everything allocated must be
// freed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/cuda/measure_machine.h"
#include "planner/problem/machine.h"
#include "tests/cuda_emulator/kernels.h"
#include "tests/executor/support/fake_cuda_driver.h"

namespace loadline::executor {
namespace {

constexpr int64_t kMemoryBytes = int64_t{1} << 30;
constexpr int64_t kContextBytes = int64_t{300} << 20;
constexpr int64_t kCopyBytes = 1 << 18;

absl::StatusOr<MeasuredMachine> MeasureFake(FakeCudaDriver& driver) {
  return MeasureCudaMachine(
      driver,
      {.device = {.prepare = OnStreams(driver, cuda_emulator::PrepareKernel)},
       .copy_bytes = kCopyBytes,
       .memory_bytes = 1 << 16,
       .matmul_size = 32,
       .meter_ns = 0});
}

TEST(MeasureCudaMachine, FillsTheProfile) {
  FakeCudaDriver driver(
      {.memory_bytes = kMemoryBytes, .context_bytes = kContextBytes});
  const auto measured = MeasureFake(driver);
  ASSERT_TRUE(measured.ok()) << measured.status();
  const planner::Machine& machine = measured->machine;
  EXPECT_EQ(machine.name, "fake");
  EXPECT_EQ(machine.device_bytes, kMemoryBytes);
  EXPECT_EQ(machine.reserved_bytes, kContextBytes + CudaDevice::kControlBytes);
  EXPECT_EQ(driver.live(), 0);
  EXPECT_GT(machine.host_bytes, 0);
  EXPECT_TRUE(machine.CanCopy());
  EXPECT_GT(machine.d2h.latency_ns, 0);
  EXPECT_FALSE(machine.copies_exclude_compute);
  ASSERT_TRUE(machine.rates.has_value());
  EXPECT_GT(machine.rates->matmul_flop_per_s.at("f32"), 0);
  EXPECT_GT(machine.rates->matmul_flop_per_s.at("bf16"), 0);
  EXPECT_GT(machine.rates->memory_bytes_per_s, 0);
  EXPECT_GT(machine.rates->launch_ns, 0);
  const auto read = planner::MachineFromJson(planner::MachineToJson(machine));
  EXPECT_TRUE(read.ok()) << read.status();

  std::vector<int64_t> sizes;
  for (const CopyRates& rates : measured->copies) {
    sizes.push_back(rates.bytes);
    EXPECT_GT(rates.d2h_bytes_per_s, 0);
    EXPECT_GT(rates.h2d_bytes_per_s, 0);
    EXPECT_GT(rates.d2h_h2d_factor, 0);
    EXPECT_LE(rates.d2h_h2d_factor, 1);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(kCopyBytes / 64, kCopyBytes / 16,
                                          kCopyBytes / 4, kCopyBytes));
}

// Lanes are measured with graphs that are launched again, not while recording.
TEST(MeasureCudaMachine, CapturesEachMeasuredStepOnce) {
  FakeCudaDriver driver;
  ASSERT_TRUE(MeasureFake(driver).ok());
  // Three at each of four sizes and at the profile's size, latency, launch, and
  // two rows of launches, each with and without copies.
  EXPECT_EQ(driver.calls("Instantiate"), 3 * 5 + 2 + 2 * 2);
  EXPECT_EQ(driver.calls("LaunchGraph"), 8 * driver.calls("Instantiate"));
}

TEST(MeasureCudaMachine, AnyCallMayFail) {
  FakeCudaDriver whole;
  ASSERT_TRUE(MeasureFake(whole).ok());
  for (int64_t call = 0; call < whole.calls(); call += 1 + whole.calls() / 10) {
    FakeCudaDriver driver({.fail_call = call});
    const auto measured = MeasureFake(driver);
    EXPECT_FALSE(measured.ok()) << "call " << call;
    EXPECT_EQ(driver.live(), 0) << "call " << call;
  }
}

}  // namespace
}  // namespace loadline::executor
