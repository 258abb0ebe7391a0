// The kernel's count follows what is allocated, touched and freed.
#include "executor/measure/resident_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/executor/support/sanitizers.h"

namespace loadline::executor {
namespace {

constexpr int64_t kTouchedBytes = int64_t{64} << 20;
constexpr int64_t kSlackBytes = kTouchedBytes / 8;

TEST(ResidentBytes, FollowsWhatIsTouchedAndFreed) {
  if (SanitizersKeepMemory()) GTEST_SKIP() << "under a sanitizer";
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  auto block = std::make_unique<std::vector<char>>(kTouchedBytes, 1);
  const int64_t with = ResidentBytes();
  EXPECT_NEAR(static_cast<double>(with - before), kTouchedBytes, kSlackBytes);
  // The kernel adds up its counts in batches: the peak may lag some pages.
  EXPECT_GE(PeakResidentBytes(), with - kSlackBytes);
  block.reset();
  ReleaseFreedMemory();
  EXPECT_LT(ResidentBytes(), with - kTouchedBytes + kSlackBytes);
  EXPECT_GE(PeakResidentBytes(), with - kSlackBytes);
}

// Small blocks are not unmapped when they are freed.
TEST(ReleaseFreedMemory, GivesBackSmallBlocks) {
  if (SanitizersKeepMemory()) GTEST_SKIP() << "under a sanitizer";
  std::vector<std::unique_ptr<std::vector<char>>> blocks;
  for (int64_t bytes = 0; bytes < kTouchedBytes; bytes += 4096) {
    blocks.push_back(std::make_unique<std::vector<char>>(4096, 1));
  }
  auto last = std::make_unique<int>(1);  // keeps the heap from shrinking
  const int64_t with = ResidentBytes();
  blocks.clear();
  ReleaseFreedMemory();
  EXPECT_LT(ResidentBytes(), with - kTouchedBytes + kSlackBytes);
  EXPECT_EQ(*last, 1);
}

}  // namespace
}  // namespace loadline::executor
