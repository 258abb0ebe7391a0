// Pinned memory: exactly the requested bytes, registered once and unregistered.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "executor/cuda/pinned.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(PinnedRegion, IsZeroAndRegisteredOnce) {
  FakeCudaDriver driver;
  for (int64_t bytes : {int64_t{1}, int64_t{4096}, (int64_t{129} << 20) + 5}) {
    auto region = cuda::PinnedRegion::Create(driver, bytes, -1);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ((*region)->bytes(), bytes);
    EXPECT_EQ(driver.pinned().back(), bytes);
    EXPECT_EQ(
        std::count((*region)->base(), (*region)->base() + bytes, std::byte{0}),
        bytes);
    EXPECT_EQ(driver.live(), 1);
    region->reset();
    EXPECT_EQ(driver.live(), 0);
  }
}

TEST(PinnedRegion, OfNoBytesIsNothing) {
  FakeCudaDriver driver;
  ASSERT_TRUE(cuda::PinnedRegion::Create(driver, 0, 0).ok());
  EXPECT_EQ(driver.calls(), 0);
}

TEST(PinnedRegion, SaysWhatTheMachineLacks) {
  FakeCudaDriver driver;
  EXPECT_EQ(
      cuda::PinnedRegion::Create(driver, int64_t{1} << 60, -1).status().code(),
      absl::StatusCode::kResourceExhausted);
  FakeCudaDriver failing({.fail_call = 0});
  EXPECT_FALSE(cuda::PinnedRegion::Create(failing, 100, -1).ok());
  EXPECT_EQ(failing.live(), 0);
}

TEST(NumaNodeOf, IsWhatLinuxSaysWhereThereAreSeveral) {
  const std::string sysfs = TemporaryPath("sysfs");
  const std::string device = sysfs + "/bus/pci/devices/0000:17:0a.0";
  std::filesystem::create_directories(device);
  std::ofstream(device + "/numa_node") << "1\n";
  EXPECT_EQ(cuda::NumaNodeOf("0000:17:0A.0", sysfs), -1);  // a single node
  std::filesystem::create_directories(sysfs + "/devices/system/node/node1");
  EXPECT_EQ(cuda::NumaNodeOf("0000:17:0A.0", sysfs), 1);
  EXPECT_EQ(cuda::NumaNodeOf("0000:18:00.0", sysfs), -1);
}

}  // namespace
}  // namespace loadline::executor
