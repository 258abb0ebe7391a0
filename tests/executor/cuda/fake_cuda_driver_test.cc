// The fake driver itself: it must expose a missing wait, or the other tests
// prove nothing.
#include "tests/executor/support/fake_cuda_driver.h"

#include <gtest/gtest.h>

#include "tests/executor/support/toy_cuda.h"

namespace loadline::executor {
namespace {

// Without the wait, some order of the lanes gives wrong bytes.
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
