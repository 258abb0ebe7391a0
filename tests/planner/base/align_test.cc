#include "planner/base/align.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace loadline::planner {
namespace {

TEST(AlignUp, GivesTheNextMultipleForAnyAlignment) {
  for (int64_t alignment = 1; alignment <= 9; ++alignment) {
    for (int64_t bytes = 0; bytes <= 40; ++bytes) {
      const int64_t up = AlignUp(bytes, alignment);
      EXPECT_EQ(up % alignment, 0);
      EXPECT_GE(up, bytes);
      EXPECT_LT(up - bytes, alignment);
    }
  }
}

TEST(AlignUp, DoesNotOverflowWhereTheResultFits) {
  EXPECT_EQ(AlignUp(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(AlignUp(INT64_MAX - 255), INT64_MAX - 255);
}

}  // namespace
}  // namespace loadline::planner
