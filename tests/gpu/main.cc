// Without a GPU no test may pass: the program reports how many tests it skips
// and exits with 77, which ctest shows as skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "executor/cuda/make_device.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto device = loadline::executor::MakeCudaDevice();
  if (device.ok() || GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const std::string why(device.status().message());
  std::printf("skipped: no GPU (%d tests): %s\n",
              testing::UnitTest::GetInstance()->total_test_count(),
              why.c_str());
  constexpr int kSkipped = 77;
  return kSkipped;
}
