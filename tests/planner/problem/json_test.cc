// Numbers and strings exactly as docs/formats.md lays them down, and the hash.
#include <gtest/gtest.h>

#include <string>

#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"

namespace loadline::planner {
namespace {

std::string Number(double value) { return JsonWriter().Number(value).Take(); }

TEST(JsonWriter, WritesNumbersAsPythonDoes) {
  EXPECT_EQ(Number(0), "0");
  EXPECT_EQ(Number(55e9), "55000000000");
  EXPECT_EQ(Number(0.6), "0.6");
  EXPECT_EQ(Number(0.0001), "0.0001");
  EXPECT_EQ(Number(0.00001), "1e-05");
  EXPECT_EQ(Number(1234.5625), "1234.5625");
  EXPECT_EQ(Number(9007199254740991.0), "9007199254740991");
  EXPECT_EQ(Number(9007199254740992.0), "9007199254740992.0");
  EXPECT_EQ(Number(1e16), "1e+16");
  EXPECT_EQ(Number(1.5e300), "1.5e+300");
}

TEST(JsonWriter, EscapesOnlyWhatMustBe) {
  EXPECT_EQ(JsonWriter().String("a\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9").Take(),
            "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"");
}

TEST(ParseJson, RefusesBadUtf8AndNumbersOutOfRange) {
  EXPECT_FALSE(ParseJson("\"\xff\"").ok());
  EXPECT_FALSE(ParseJson("1e999").ok());
  EXPECT_FALSE(ParseJson("").ok());
  EXPECT_FALSE(ParseJson("1 2").ok());
  EXPECT_TRUE(ParseJson(" 1 ").ok());
}

}  // namespace
}  // namespace loadline::planner
