#include "tools/cli/number_checks.h"

#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

TEST(NumberChecks, AcceptWhatTheirNamesSay) {
  EXPECT_EQ(CheckPositive("1e-9"), "");
  EXPECT_EQ(CheckPositive("3"), "");
  EXPECT_EQ(CheckNonNegative("0"), "");
  EXPECT_EQ(CheckShare("0"), "");
  EXPECT_EQ(CheckShare("1"), "");
}

TEST(NumberChecks, TakeSeedsThatTheParserCanHold) {
  EXPECT_EQ(CheckSeed("0"), "");
  EXPECT_EQ(CheckSeed("18446744073709551615"), "");
  EXPECT_EQ(CheckSeed("18446744073709551616"),
            "must be a whole number from 0 to 18446744073709551615, not "
            "'18446744073709551616'");
  for (const char* text : {"", "-1", "1.5", "1e3", "x"}) {
    EXPECT_NE(CheckSeed(text), "") << text;
  }
}

TEST(NumberChecks, SayWhatTheNumberMustBe) {
  EXPECT_EQ(CheckPositive("0"), "must be a number above 0, not '0'");
  EXPECT_EQ(CheckNonNegative("-1"),
            "must be a number that is at least 0, not '-1'");
  EXPECT_EQ(CheckShare("1.5"), "must be a number from 0 to 1, not '1.5'");
  for (const char* text : {"abc", "", "1e999", "inf", "nan", "1 2"}) {
    EXPECT_NE(CheckPositive(text), "") << text;
    EXPECT_NE(CheckNonNegative(text), "") << text;
    EXPECT_NE(CheckShare(text), "") << text;
  }
}

}  // namespace
}  // namespace loadline::tools
