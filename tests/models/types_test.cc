// Types: names, sizes and their limits.
#include "models/types.h"

#include <gtest/gtest.h>

#include <limits>

namespace loadline::models {
namespace {

TEST(TensorType, PrintsAndParsesBack) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64,
        DType::kI32, DType::kU8, DType::kI8, DType::kBool}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {0}, {3}, {2, 1, 5}}) {
      const TensorType type{dtype, dims};
      const auto parsed = TensorTypeFromText(type.ToString());
      ASSERT_TRUE(parsed.ok()) << type.ToString();
      EXPECT_EQ(*parsed, type);
    }
  }
  EXPECT_EQ((TensorType{DType::kBF16, {2, 3}}).ToString(), "bf16[2,3]");
}

TEST(TensorType, RefusesTextThatIsNoType) {
  for (const char* text :
       {"", "f32", "f32[", "[2]", "f31[2]", "f32[2,]", "f32[a]", "f32[-1]",
        "f32[2]x", "f32[9223372036854775807]"}) {
    EXPECT_FALSE(TensorTypeFromText(text).ok()) << text;
  }
}

TEST(MakeTensorType, RefusesSizesBeyondInt64) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(MakeTensorType(DType::kU8, {big}).ok());
  EXPECT_FALSE(MakeTensorType(DType::kF32, {big / 4 + 1}).ok());
  EXPECT_FALSE(MakeTensorType(DType::kU8, {int64_t{1} << 32, 1ll << 32}).ok());
  // A zero does not hide an overflow of partial products.
  EXPECT_FALSE(MakeTensorType(DType::kU8, {big, big, 0}).ok());
  EXPECT_FALSE(MakeTensorType(DType::kU8, {-1}).ok());
}

TEST(MakeTensor, HoldsItsBytes) {
  const Tensor t = Int64Tensor({7, -8});
  EXPECT_EQ(t.type.ToString(), "i64[2]");
  EXPECT_EQ(t.as<int64_t>()[1], -8);
  EXPECT_EQ(ScalarTensor(1.5f).as<float>()[0], 1.5f);
  const Tensor zero = ZeroTensor({DType::kI32, {3}});
  EXPECT_EQ(zero.as<int32_t>().size(), 3u);
  EXPECT_EQ(zero.as<int32_t>()[2], 0);
}

}  // namespace
}  // namespace loadline::models
