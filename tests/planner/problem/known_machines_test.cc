// The table of data sheets: every entry is a profile that can be used, and the
// one GPU that was measured is near its own.
#include "planner/problem/known_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace loadline::planner {
namespace {

using testing::HasSubstr;

TEST(KnownMachine, IsAProfileThatReadsBack) {
  const std::vector<std::string> names = KnownMachineNames();
  ASSERT_GT(names.size(), 10u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    const auto machine = KnownMachine(name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->name, name);
    EXPECT_TRUE(machine->CanCopy()) << name;
    const auto again = MachineFromJson(MachineToJson(*machine));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(MachineToJson(*again), MachineToJson(*machine));
    EXPECT_TRUE(again->nominal) << name;
    ASSERT_TRUE(again->rates.has_value());
    const Rates& rates = *again->rates;
    // Nobody moves a byte for less than a product of f32 takes, and halves go
    // at least as fast.
    const double f32 = rates.matmul_flop_per_s.at("f32");
    EXPECT_GT(f32, rates.memory_bytes_per_s) << name;
    EXPECT_GT(rates.matmul_flop_per_s.at("f16"), f32) << name;
    EXPECT_GT(rates.memory_bytes_per_s, again->d2h.bytes_per_s) << name;
    EXPECT_GT(again->device_bytes, 10 * again->reserved_bytes) << name;
  }
}

TEST(KnownMachine, GoesByItsDriversNameToo) {
  const auto machine = KnownMachine("NVIDIA H100 80GB HBM3");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->name, "h100-sxm");
}

TEST(KnownMachine, GoesByItsNameAsPeopleWriteIt) {
  for (const char* name : {"RTX 4090", "rtx4090", "GeForce RTX 4090",
                           "RTX_4090", "nvidia geforce rtx 4090"}) {
    const auto machine = KnownMachine(name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->name, "rtx-4090");
  }
  for (const char* name : {"", "NVIDIA", "-", "H100", "4090",
                           "NVIDIA GeForce RTX 4090 Laptop GPU"}) {
    EXPECT_THAT(KnownMachine(name).status().message(),
                HasSubstr("there are a10"))
        << name;
  }
}

// One H100, by `loadline doctor --device cuda` on 23 November 2026.
TEST(KnownMachine, IsNearWhatWasMeasured) {
  const Machine machine = *KnownMachine("h100-sxm");
  const auto near = [](double expected) {
    return testing::DoubleNear(expected, 0.05 * expected);
  };
  EXPECT_THAT(machine.rates->matmul_flop_per_s.at("bf16"), near(7.607e14));
  EXPECT_THAT(machine.rates->matmul_flop_per_s.at("f32"), near(5.080e13));
  EXPECT_THAT(machine.rates->memory_bytes_per_s, near(2.723e12));
  EXPECT_THAT(machine.d2h.bytes_per_s, near(5.426e10));
  EXPECT_THAT(machine.h2d.bytes_per_s, near(5.249e10));
  EXPECT_THAT(static_cast<double>(machine.device_bytes), near(85'017'493'504));
  EXPECT_THAT(static_cast<double>(machine.reserved_bytes), near(569'180'159));
}

TEST(KnownMachine, SaysWhichThereAre) {
  const auto none = KnownMachine("h100");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()),
              testing::AllOf(HasSubstr("\"h100\""), HasSubstr("h100-sxm")));
}

}  // namespace
}  // namespace loadline::planner
