// The device's sort compared with std::stable_sort.
#include <algorithm>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

TEST(StableSort, AgreesWithTheLibraryInEveryOrderOfThreads) {
  std::mt19937_64 random(1);
  struct Size {
    int count;
    uint32_t bound;
  };
  // One tile, several, a last tile with one item; one, two and three digits.
  for (const Size& size : std::vector<Size>{{0, 9},
                                            {1, 1},
                                            {5, 1},
                                            {300, 256},
                                            {2048, 257},
                                            {2049, 70000},
                                            {9000, 3},
                                            {5000, 50258}}) {
    std::vector<uint32_t> keys(static_cast<size_t>(size.count));
    for (uint32_t& key : keys) {
      key = static_cast<uint32_t>(random() % size.bound);
    }
    std::vector<uint32_t> want(keys.size());
    std::iota(want.begin(), want.end(), 0);
    std::stable_sort(want.begin(), want.end(),
                     [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    for (uint64_t seed : {0, 1}) {
      cuda_emulator::SetOrder(seed);
      const auto got = cuda_emulator::SortPositions(keys, size.bound);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(*got, want) << size.count << " keys below " << size.bound;
    }
  }
  cuda_emulator::SetOrder(0);
}

}  // namespace
}  // namespace loadline::conformance
