// Numbers and strings exactly as docs/formats.md lays them down, and the hash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine.h"

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

TEST(MachineJson, ReadsBackWhatItWritesAndAllowsNoCopyRates) {
  const char kText[] =
      R"({"format":"loadline.machine/1","name":"m","device_bytes":5,)"
      R"("reserved_bytes":0})";
  const auto machine = MachineFromJson(kText);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_FALSE(machine->CanCopy());
  const std::string text = MachineToJson(*machine);
  const auto again = MachineFromJson(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(MachineToJson(*again), text);
}

TEST(MachineJson, KeepsUnderExtraWhatCopiesCostComputing) {
  const auto text = [](absl::string_view extra) {
    return absl::StrCat(
        R"({"format":"loadline.machine/1","name":"m","device_bytes":5,)",
        R"("reserved_bytes":0,"extra":)", extra, "}");
  };
  const auto other = MachineFromJson(text(R"({"rack":7})"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->copies_stop_compute);
  const auto machine =
      MachineFromJson(text(R"({"rack":7,"copies_stop_compute":true})"));
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_TRUE(machine->copies_stop_compute);
  const auto again = MachineFromJson(MachineToJson(*machine));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->copies_stop_compute);
  EXPECT_EQ(
      MachineFromJson(text(R"({"copies_stop_compute":1})")).status().message(),
      "machine: field \"extra.copies_stop_compute\" must be true or false");
  const auto switching = MachineFromJson(text(R"({"switch_ns":2000})"));
  ASSERT_TRUE(switching.ok()) << switching.status();
  const auto reread = MachineFromJson(MachineToJson(*switching));
  ASSERT_TRUE(reread.ok()) << reread.status();
  EXPECT_EQ(reread->switch_ns, 2000);
  EXPECT_EQ(MachineFromJson(text(R"({"switch_ns":-1})")).status().message(),
            "machine: field \"extra.switch_ns\" must be an integer, 0 or more");
  EXPECT_EQ(reread->provisional, "");
  const auto provisional = MachineFromJson(text(R"({"provisional":"busy"})"));
  ASSERT_TRUE(provisional.ok()) << provisional.status();
  EXPECT_EQ(MachineFromJson(MachineToJson(*provisional))->provisional, "busy");
  EXPECT_EQ(MachineFromJson(text(R"({"provisional":1})")).status().message(),
            "machine: field \"extra.provisional\" must be a string");
  EXPECT_FALSE(reread->nominal);
  const auto nominal = MachineFromJson(text(R"({"nominal":true})"));
  ASSERT_TRUE(nominal.ok()) << nominal.status();
  EXPECT_TRUE(MachineFromJson(MachineToJson(*nominal))->nominal);
  EXPECT_EQ(MachineFromJson(text("7")).status().message(),
            "machine: field \"extra\" must be an object");
  EXPECT_TRUE(machine->algorithms.empty());
}

TEST(MachineJson, KeepsUnderExtraWhichAlgorithmIsFastest) {
  Machine machine;
  machine.name = "m";
  machine.algorithms = {{"MatMul(f32[2,2])", "7.20.1"}, {"Conv", "nhwc \"1\""}};
  const std::string text = MachineToJson(machine);
  const auto again = MachineFromJson(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->algorithms, machine.algorithms);
  EXPECT_EQ(MachineToJson(*again), text);
  EXPECT_THAT(MachineFromJson(R"({"format":"loadline.machine/1","name":"m",
      "device_bytes":1,"reserved_bytes":0,"extra":{"algorithms":{"Conv":1}}})")
                  .status()
                  .message(),
              testing::HasSubstr("machine.extra.algorithms"));
}

}  // namespace
}  // namespace loadline::planner
