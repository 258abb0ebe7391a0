#include "executor/ops/state_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "executor/reference/state_blocks.h"

namespace loadline::executor {
namespace {

template <typename Code>
class StateCodeOfBothKinds : public testing::Test {
 public:
  static const std::vector<double>& Defined() {
    static const auto* numbers =
        new std::vector<double>(reference::StateNumbers(Code::kSigned));
    return *numbers;
  }
};
using Codes = testing::Types<SignedCode, UnsignedCode>;
TYPED_TEST_SUITE(StateCodeOfBothKinds, Codes);

TYPED_TEST(StateCodeOfBothKinds, HasTheNumbersOfItsDefinition) {
  const std::vector<double>& defined = TestFixture::Defined();
  ASSERT_EQ(defined.size(), size_t{kStateCodes});
  for (int code = 0; code < kStateCodes; ++code) {
    const double number = defined[static_cast<size_t>(code)];
    EXPECT_NEAR(NumberOfCode<TypeParam>(code), number, 1e-7 * std::fabs(number))
        << code;
  }
  EXPECT_EQ(NumberOfCode<TypeParam>(0), 0);
  EXPECT_EQ(NumberOfCode<TypeParam>(kTopCode<TypeParam>), 1);
  EXPECT_EQ(NumberOfCode<UnsignedCode>(255), 1);
  EXPECT_EQ(NumberOfCode<SignedCode>(128), 1);
}

TYPED_TEST(StateCodeOfBothKinds, GrowsWithItsNumbers) {
  for (int code = 1; code <= kTopCode<TypeParam>; ++code) {
    EXPECT_GT(NumberOfCode<TypeParam>(code), NumberOfCode<TypeParam>(code - 1))
        << code;
  }
  for (int code = kTopCode<TypeParam> + 1; code < kStateCodes; ++code) {
    EXPECT_EQ(NumberOfCode<TypeParam>(code),
              -NumberOfCode<TypeParam>(code - kTopCode<TypeParam>));
  }
}

TYPED_TEST(StateCodeOfBothKinds, OfACodesNumberIsThatCode) {
  for (int code = 0; code < kStateCodes; ++code) {
    EXPECT_EQ(CodeOfNumber<TypeParam>(NumberOfCode<TypeParam>(code)), code);
  }
}

// On both sides of the middle of any two neighbours.
TYPED_TEST(StateCodeOfBothKinds, IsTheNearestOne) {
  const std::vector<double>& defined = TestFixture::Defined();
  std::vector<double> sorted = defined;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i + 1 < sorted.size(); ++i) {
    const double middle = (sorted[i] + sorted[i + 1]) / 2;
    for (const double x : {middle * (1 - 2e-6), middle * (1 + 2e-6),
                           middle - (middle - sorted[i]) / 3}) {
      EXPECT_EQ(CodeOfNumber<TypeParam>(static_cast<float>(x)),
                reference::NearestStateCode(defined, x))
          << x;
    }
  }
}

TEST(StateCode, KeepsSecondMomentsAboveZero) {
  EXPECT_EQ(CodeOfNumber<UnsignedCode>(0.0f), 0);
  EXPECT_EQ(CodeOfNumber<UnsignedCode>(1e-30f), 1);
  EXPECT_EQ(CodeOfNumber<SignedCode>(1e-30f), 0);
  EXPECT_EQ(CodeOfNumber<SignedCode>(-1e-30f), 0);
}

TEST(StateCode, HasNoMinusOne) {
  EXPECT_EQ(CodeOfNumber<SignedCode>(1.0f), 128);
  EXPECT_EQ(CodeOfNumber<SignedCode>(-1.0f), 255);
  EXPECT_NEAR(NumberOfCode<SignedCode>(255), -0.993, 1e-4);
}

// Half the distance of neighbours, 0.9 / 2^f of the decade, which is more than
// that of neighbours in two decades. Below the least number, half of it, or all
// where only zero becomes zero.
template <typename Code>
double MostError(double x) {
  const double size = std::fabs(x);
  if (size >= 1) return Code::kSigned && x < 0 ? 0.0071 : 0;
  const double least = NumberOfCode<Code>(1);
  if (size < least) return Code::kSigned ? least / 2 : least;
  int fraction_bits = Code::kFractionBits;
  double decade = 1;
  while (size <= decade / 10 && fraction_bits > Code::kFractionBits - 6) {
    decade /= 10;
    --fraction_bits;
  }
  return decade * 0.45 / (1 << fraction_bits) * 1.001;
}

template <typename Code>
void ExpectWithinBounds() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const float size : {1e-20f, 1e-3f, 1.0f, 1e10f}) {
    float numbers[256];
    float scale = 0;
    for (float& x : numbers) {
      x = size * std::pow(10.0f, 2 * normal(random));  // over many decades
      if (Code::kSigned && random() % 2 == 0) x = -x;
      scale = std::max(scale, std::fabs(x));
    }
    for (const float x : numbers) {
      const float share = ShareOfScale(x, scale);
      const double read = NumberOfCode<Code>(CodeOfNumber<Code>(share));
      EXPECT_LE(std::fabs(read - share), MostError<Code>(share) + 1e-9)
          << share;
    }
  }
}

TEST(StateCode, IsCloseInEveryDecade) {
  ExpectWithinBounds<SignedCode>();
  ExpectWithinBounds<UnsignedCode>();
}

TEST(StateCode, OfABlockOfZerosIsZero) {
  EXPECT_EQ(CodeOfNumber<SignedCode>(ShareOfScale(0, 0)), 0);
  EXPECT_EQ(CodeOfNumber<UnsignedCode>(ShareOfScale(0, 0)), 0);
}

}  // namespace
}  // namespace loadline::executor
