// Machines of both versions: what is read, what is written, and each error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "planner/problem/machine.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

// Every field of /2, in the order in which it is written.
constexpr char kAll[] =
    R"({"format":"loadline.machine/2","name":"m","device_bytes":100,)"
    R"("reserved_bytes":1,"host_bytes":9,"disk_bytes":70,)"
    R"("d2h":{"bytes_per_s":2.5,"latency_ns":3},"h2d":{"bytes_per_s":4},)"
    R"("write":{"bytes_per_s":5},"read":{"bytes_per_s":6,"latency_ns":8},)"
    R"("d2h_h2d_factor":0.6,"write_read_factor":0.7,"copy_overhead_ns":11,)"
    R"("copies_exclude_compute":true,"nominal":true,)"
    R"("algorithms":{"Conv":"nhwc"},"ops":{"a":1,"b":2},)"
    R"("rates":{"matmul_flop_per_s":{"f32":10},"memory_bytes_per_s":1,)"
    R"("launch_ns":4}})";

constexpr char kLeast[] =
    R"({"format":"loadline.machine/2","name":"m","device_bytes":5,)"
    R"("reserved_bytes":0,"host_bytes":0})";

std::string Version1(absl::string_view extra) {
  return absl::StrCat(
      R"({"format":"loadline.machine/1","name":"m","device_bytes":5,)",
      R"("reserved_bytes":0,"extra":)", extra, "}");
}

std::string ErrorOf(const std::string& text) {
  return std::string(MachineFromJson(text).status().message());
}

TEST(MachineJson, ReadsAndWritesEveryField) {
  for (const char* text : {kAll, kLeast}) {
    const auto machine = MachineFromJson(text);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(MachineToJson(*machine), text);
  }
  const Machine machine = *MachineFromJson(kAll);
  EXPECT_EQ(machine.disk_bytes, 70);
  EXPECT_EQ(machine.d2h.bytes_per_s, 2.5);
  EXPECT_EQ(machine.d2h.latency_ns, 3);
  EXPECT_EQ(machine.h2d.bytes_per_s, 4);
  EXPECT_EQ(machine.h2d.latency_ns, 0);
  EXPECT_EQ(machine.write.bytes_per_s, 5);
  EXPECT_EQ(machine.read.latency_ns, 8);
  EXPECT_EQ(machine.d2h_h2d_factor, 0.6);
  EXPECT_EQ(machine.write_read_factor, 0.7);
  EXPECT_EQ(machine.copy_overhead_ns, 11);
  EXPECT_TRUE(machine.copies_exclude_compute);
  EXPECT_TRUE(machine.nominal);
  EXPECT_FALSE(MachineFromJson(kLeast)->CanCopy());
}

TEST(MachineJson, IgnoresExtraInVersion2AndDropsIt) {
  const std::string text = absl::StrReplaceAll(
      kLeast, {{"\"host_bytes\":0",
                R"("host_bytes":0,"extra":{"switch_ns":-1,"nominal":7})"}});
  const auto machine = MachineFromJson(text);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->copy_overhead_ns, 0);
  EXPECT_EQ(MachineToJson(*machine), kLeast);
}

TEST(MachineJson, NamesTheFieldOfEveryErrorOfVersion2) {
  const struct {
    const char* from;  // in kAll
    const char* to;
    const char* message;
  } cases[] = {
      {"machine/2", "machine/3", "field \"format\" must be"},
      {"\"host_bytes\":9,", "", "machine: field \"host_bytes\" is missing"},
      {"\"bytes_per_s\":2.5,", "",
       "machine.d2h: field \"bytes_per_s\" is missing"},
      {"\"bytes_per_s\":2.5", "\"bytes_per_s\":0",
       "machine.d2h: field \"bytes_per_s\" must be from 1"},
      {"\"bytes_per_s\":2.5", "\"bytes_per_s\":0.5",
       "machine: field \"d2h.bytes_per_s\" must be from 1"},
      {"\"bytes_per_s\":6", "\"bytes_per_s\":1e19",
       "machine: field \"read.bytes_per_s\" must be from 1"},
      {"\"latency_ns\":3", "\"latency_ns\":-3",
       "machine.d2h: field \"latency_ns\" must not be negative"},
      {"\"latency_ns\":3", "\"delay_ns\":3",
       "machine.d2h: field \"delay_ns\" is unknown"},
      {"\"d2h_h2d_factor\":0.6", "\"d2h_h2d_factor\":1.5",
       "machine: field \"d2h_h2d_factor\" must be from 0.001 to 1"},
      {"\"write_read_factor\":0.7", "\"write_read_factor\":0",
       "machine: field \"write_read_factor\" must be from 0.001 to 1"},
      {"\"copy_overhead_ns\":11", "\"copy_overhead_ns\":-11",
       "machine: field \"copy_overhead_ns\" must not be negative"},
      {"\"copy_overhead_ns\":11", "\"copy_overhead_ns\":1000000000000000001",
       "machine: field \"copy_overhead_ns\" must be at most 1e18"},
      {"\"copy_overhead_ns\":11", "\"copy_overhead_ns\":9223372036854775808",
       "machine: field \"copy_overhead_ns\" does not fit 64 bits"},
      {"\"copies_exclude_compute\":true", "\"copies_exclude_compute\":1",
       "machine: field \"copies_exclude_compute\" must be true or false"},
      {"\"nominal\":true", "\"nominal\":1",
       "machine: field \"nominal\" must be true or false"},
      {"\"nominal\":true", "\"bidirectional\":1",
       "machine: field \"bidirectional\" is unknown"},
      {"{\"Conv\":\"nhwc\"}", "{\"Conv\":1}", "machine.algorithms: field"},
      {"\"disk_bytes\":70", "\"disk_bytes\":-70",
       "machine: field \"disk_bytes\" must not be negative"},
      {"\"a\":1", "\"a\":1.5", "machine.ops: field \"a\" must be an integer"},
  };
  for (const auto& test : cases) {
    const std::string text = absl::StrReplaceAll(kAll, {{test.from, test.to}});
    ASSERT_NE(text, kAll) << test.from;
    EXPECT_THAT(ErrorOf(text), HasSubstr(test.message)) << test.to;
  }
}

TEST(MachineJson, ReadsVersion1AndWritesVersion2) {
  const auto copies = MachineFromJson(
      R"({"format":"loadline.machine/1","name":"m","device_bytes":5,)"
      R"("reserved_bytes":0,"d2h_bytes_per_s":2,"h2d_bytes_per_s":3,)"
      R"("copy_latency_ns":4,"bidirectional":0.5,"host_bytes":6,"extra":{)"
      R"("rack":7,"copies_stop_compute":true,"switch_ns":2000,)"
      R"("nominal":true,"algorithms":{"Conv":"nhwc"}}})");
  ASSERT_TRUE(copies.ok()) << copies.status();
  EXPECT_EQ(MachineToJson(*copies),
            R"({"format":"loadline.machine/2","name":"m","device_bytes":5,)"
            R"("reserved_bytes":0,"host_bytes":6,)"
            R"("d2h":{"bytes_per_s":2,"latency_ns":4},)"
            R"("h2d":{"bytes_per_s":3,"latency_ns":4},"d2h_h2d_factor":0.5,)"
            R"("copy_overhead_ns":2000,"copies_exclude_compute":true,)"
            R"("nominal":true,"algorithms":{"Conv":"nhwc"}})");
  const auto least = MachineFromJson(Version1("{}"));
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(MachineToJson(*least), kLeast);
  EXPECT_EQ(MachineFromJson(Version1(R"({"provisional":"busy"})"))->provisional,
            "busy");
}

TEST(MachineJson, NamesTheFieldOfEveryErrorOfVersion1) {
  const struct {
    const char* extra;
    const char* message;
  } cases[] = {
      {"7", "machine: field \"extra\" must be an object"},
      {R"({"copies_stop_compute":1})",
       "machine: field \"extra.copies_stop_compute\" must be true or false"},
      {R"({"nominal":1})",
       "machine: field \"extra.nominal\" must be true or false"},
      {R"({"switch_ns":-1})",
       "machine: field \"extra.switch_ns\" must be an integer, 0 or more"},
      {R"({"provisional":1})",
       "machine: field \"extra.provisional\" must be a string"},
      {R"({"algorithms":{"Conv":1}})", "machine.extra.algorithms: field"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ErrorOf(Version1(test.extra)), HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace loadline::planner
