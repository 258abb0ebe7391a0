// A change of the data is noticed, and named.
#include "executor/train/data_digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace loadline::executor {
namespace {

Column Numbers(const char* name, int64_t rows, float first) {
  Column column = {.name = name, .row_bytes = 2 * sizeof(float)};
  std::vector<float> numbers(static_cast<size_t>(2 * rows), 1.5f);
  numbers[0] = first;
  column.data.resize(numbers.size() * sizeof(float));
  std::memcpy(column.data.data(), numbers.data(), column.data.size());
  return column;
}

std::string Digest(int64_t examples, float x, float y) {
  return DigestOfData(
      {.examples = examples,
       .columns = {Numbers("x", examples, x), Numbers("target", examples, y)}});
}

TEST(OtherData, SaysWhatDiffers) {
  const std::string then = Digest(10, 1, 2);
  EXPECT_EQ(OtherData(then, Digest(10, 1, 2)), "");
  EXPECT_EQ(OtherData("", then), "");
  EXPECT_EQ(OtherData(then, Digest(9, 1, 2)), "10 examples, now 9");
  EXPECT_EQ(OtherData(then, Digest(10, 1, 3)), "other numbers in 'target'");
  EXPECT_EQ(OtherData(then, Digest(10, 0, 3)),
            "other numbers in 'x', 'target'");
}

TEST(OtherData, SeesTheEndsOfManyRows) {
  constexpr int64_t kMany = 3 << 20;  // 24 MiB each
  const std::string then = Digest(kMany, 1, 2);
  EXPECT_EQ(OtherData(then, Digest(kMany, 1, 3)), "other numbers in 'target'");
}

TEST(DigestOfData, CountsARowOfEveryStepOnce) {
  DataSet data = {.examples = 5, .columns = {Numbers("mask", 1, 1)}};
  data.columns[0].every_step = true;
  EXPECT_EQ(DigestOfData(data).substr(0, 11), "5 examples\n");
}

TEST(DigestOfData, ReadsOneLargeRowOnce) {
  const auto digest = [](std::byte last) {
    Column table = {.name = "table", .row_bytes = int64_t{20} << 20};
    table.every_step = true;
    table.data.resize(static_cast<size_t>(table.row_bytes));
    table.data.back() = last;
    return DigestOfData({.examples = 5, .columns = {table}});
  };
  EXPECT_EQ(digest(std::byte{1}), digest(std::byte{1}));
  EXPECT_NE(digest(std::byte{1}), digest(std::byte{2}));
}

}  // namespace
}  // namespace loadline::executor
