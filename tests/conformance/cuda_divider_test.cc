// Division by a number known when a kernel is prepared, computed as a
// multiplication and a shift.
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

TEST(Divider, DividesExactlyOnBothSidesOfItsShortWay) {
  const int64_t edge = int64_t{1} << 31;
  std::vector<int64_t> numbers = {edge - 1, edge, edge + 1, edge * 2,
                                  int64_t{1} << 40};
  std::mt19937_64 random(1);
  for (int bits = 1; bits < 34; ++bits) {
    const int64_t power = int64_t{1} << (bits - 1);
    for (int64_t near : {power - 1, power, power + 1}) numbers.push_back(near);
    for (int i = 0; i < 10; ++i) {
      numbers.push_back(static_cast<int64_t>(random() >> (64 - bits)));
    }
  }
  for (int64_t divisor : numbers) {
    if (divisor == 0) continue;
    for (int64_t n : numbers) {
      ASSERT_EQ(cuda_emulator::DivideOnDevice(n, divisor), n / divisor)
          << n << " / " << divisor;
    }
  }
}
}  // namespace
}  // namespace loadline::conformance
