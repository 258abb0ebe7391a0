// The arena has exactly the requested size, with inaccessible memory around it.
#include "executor/cpu/arena.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace loadline::executor {
namespace {

TEST(Arena, IsAlignedZeroAndWritableThroughout) {
  for (int64_t bytes : {1, 255, 256, 4096, 4097, 10000, 1 << 20}) {
    auto arena = Arena::Create(bytes);
    ASSERT_TRUE(arena.ok()) << arena.status();
    std::byte* base = (*arena)->base();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % Arena::kAlignment, 0u);
    EXPECT_EQ((*arena)->bytes(), bytes);
    EXPECT_GE((*arena)->mapped_bytes(), bytes);
    EXPECT_LT((*arena)->mapped_bytes(), bytes + 4096);
    for (int64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(base[i], std::byte{0});
      base[i] = std::byte{1};
    }
  }
}

TEST(Arena, MayBeEmpty) { EXPECT_TRUE(Arena::Create(0).ok()); }

TEST(Arena, RefusesMoreThanTheMachineCanMap) {
  EXPECT_EQ(Arena::Create(int64_t{1} << 60).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Arena::Create(INT64_MAX).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Arena::Create(-1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ArenaDeathTest, OneByteBeyondTheEndFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto arena = Arena::Create(3 * 256);
  ASSERT_TRUE(arena.ok());
  volatile std::byte* end = (*arena)->base() + (*arena)->bytes();
  end[-1] = std::byte{1};
  EXPECT_DEATH(end[0] = std::byte{1}, "");
}

TEST(ArenaDeathTest, BelowTheFirstPageFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto arena = Arena::Create(4096);  // whole pages, so there is no slack
  ASSERT_TRUE(arena.ok());
  volatile std::byte* base = (*arena)->base();
  base[0] = std::byte{1};
  EXPECT_DEATH(base[-1] = std::byte{1}, "");
}

}  // namespace
}  // namespace loadline::executor
