// The emulator detects the mistakes that it is made for.
#include "gtest/gtest.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/cuda_emulator/faulty_kernels.h"

namespace cuda_emulator {
namespace {

TEST(CudaEmulator, FindsBarriersThatNotAllThreadsReach) {
  const absl::Status half = RunDivergentBarrier();
  EXPECT_NE(half.message().find("not all threads"), absl::string_view::npos)
      << half;
  const absl::Status two = RunTwoBarriers();
  EXPECT_NE(two.message().find("not all threads"), absl::string_view::npos)
      << two;
}

TEST(CudaEmulator, FindsAnExchangeThatMissesALane) {
  const absl::Status status = RunMissingLane();
  EXPECT_NE(status.message().find("misses a lane"), absl::string_view::npos)
      << status;
}

TEST(CudaEmulator, RefusesWhatNoGpuLaunches) {
  EXPECT_FALSE(RunTooLargeBlock().ok());
}

TEST(CudaEmulator, ShowsAMissingBarrierBySomeOrder) {
  std::vector<int> right(64);
  for (int i = 0; i < 64; ++i) right[i] = (i + 1) % 64;
  for (uint64_t seed : {0, 1, 2}) {
    SetOrder(seed);
    std::vector<int> read;
    ASSERT_TRUE(RunNeighbours(true, read).ok());
    EXPECT_EQ(read, right);
    ASSERT_TRUE(RunNeighbours(false, read).ok());
    EXPECT_NE(read, right);
  }
  SetOrder(0);
}

}  // namespace
}  // namespace cuda_emulator
