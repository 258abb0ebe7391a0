// Parses and formats budgets and numbers.
#include "tools/cli/units.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace loadline::tools {
namespace {

planner::Plan Keeping(int64_t bytes) {
  planner::Plan plan;
  plan.predicted.peak_bytes = plan.arena_bytes = bytes;
  return plan;
}

TEST(ParseBudget, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBudget("3GiB")->bytes, 3LL << 30);
  EXPECT_EQ(ParseBudget("3GB")->bytes, 3'000'000'000);
  EXPECT_EQ(ParseBudget(" 1.5 mib ")->bytes, 3 << 19);
  EXPECT_EQ(ParseBudget("4096B")->bytes, 4096);
}

TEST(ParseBudget, ReadsALetterWithOrWithoutIAsTheBinaryUnit) {
  EXPECT_EQ(ParseBudget("3G")->bytes, ParseBudget("3GiB")->bytes);
  EXPECT_EQ(ParseBudget("1.5m")->bytes, ParseBudget("1.5MiB")->bytes);
  EXPECT_EQ(ParseBudget("7 K")->bytes, 7 << 10);
  EXPECT_EQ(ParseBudget("2T")->bytes, 2LL << 40);
  EXPECT_EQ(ParseBudget("3Gi")->bytes, ParseBudget("3GiB")->bytes);
  EXPECT_EQ(ParseBudget("5ki")->bytes, 5 << 10);
  EXPECT_EQ(ParseBudget("6 Mi")->bytes, 6 << 20);
  EXPECT_EQ(ParseBudget("2TI")->bytes, 2LL << 40);
}

TEST(ParseBudget, TakesAShareOfTheWhole) {
  const auto of_1001 = [](const char* text) {
    return *planner::BytesOf(*ParseBudget(text), planner::Problem(),
                             Keeping(1001));
  };
  EXPECT_EQ(of_1001("60%"), 601);  // 600.6, rounded up
  EXPECT_EQ(of_1001("100%"), 1001);
  EXPECT_EQ(of_1001("2KiB"), 2048);
}

// 0.55 * 100 is more than 55 in floating point, 1.1 * 1e9 less than 11e8.
TEST(ParseBudget, ReadsDecimalsExactly) {
  for (int64_t percent = 1; percent <= 100; ++percent) {
    const auto budget = ParseBudget(absl::StrCat(percent, "%"));
    EXPECT_EQ(*planner::BytesOf(*budget, planner::Problem(), Keeping(100)),
              percent);
  }
  EXPECT_EQ(ParseBudget("33.3333333%")->share_ppb, 333'333'333);
  EXPECT_EQ(ParseBudget("33.33333331%")->share_ppb, 333'333'334);
  EXPECT_EQ(ParseBudget("1.1GB")->bytes, 1'100'000'000);
  EXPECT_EQ(ParseBudget("0.3 GiB")->bytes, 322'122'547);
  EXPECT_EQ(ParseBudget("9007199254740993B")->bytes, 9007199254740993);
  EXPECT_EQ(ParseBudget("+.5KiB")->bytes, 512);
}

TEST(ParseBudget, KnowsTheSmallest) {
  EXPECT_EQ(ParseBudget("smallest")->kind, planner::Budget::Kind::kSmallest);
}

TEST(ParseBudget, RefusesABareNumberWithAHint) {
  const absl::Status status = ParseBudget("3").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("3GiB"), absl::string_view::npos);
  // As the PyTorch package writes shares.
  EXPECT_NE(ParseBudget("0.5").status().message().find("write 50%"),
            absl::string_view::npos);
}

TEST(ParseBudget, RefusesNonsense) {
  for (const char* text : {"", "GiB", "-1GiB", "0%", "1XB", "nan%", "1e99GiB",
                           "99999999999TiB", "1.2.3GB", "0.5B", "1-2GB"}) {
    EXPECT_FALSE(ParseBudget(text).ok()) << text;
  }
}

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(1048575), "1.00 MiB");
  EXPECT_EQ(FormatBytes(123LL << 20), "123 MiB");
}

TEST(FormatNs, ChoosesTheUnit) {
  EXPECT_EQ(FormatNs(999), "999 ns");
  EXPECT_EQ(FormatNs(13'240'000), "13.2 ms");
  EXPECT_EQ(FormatNs(1'250'000'000), "1.25 s");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-1234), "-1,234");
}

}  // namespace
}  // namespace loadline::tools
