// Training in bf16: its results, and that plans keep their promises as in fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

struct Family {
  const char* name;
  const char* data;
  const char* steps;
  double tolerance;  // of the last loss, relative to fp32's
  const char* precision = "bf16";
};

class Bf16 : public testing::TestWithParam<Family> {};

CommandResult RunFamily(const Family& family, std::vector<std::string> more) {
  const std::vector<std::string> base = {
      "run",     Zoo(std::string(family.name) + ".onnx"),
      "--data",  Zoo(family.data),
      "--batch", "16",
      "--steps", family.steps,
      "--seed",  "7",
      "--json"};
  more.insert(more.begin(), base.begin(), base.end());
  return RunLoadline(more);
}

// Losses are close to fp32's; a tight plan gives the same weights in the
// predicted arena.
TEST_P(Bf16, TrainsLikeFp32UnderATightPlan) {
  const CommandResult fp32 = RunFamily(GetParam(), {});
  ASSERT_EQ(fp32.exit_code, 0) << fp32.err;
  const CommandResult keep =
      RunFamily(GetParam(), {"--precision", GetParam().precision});
  ASSERT_EQ(keep.exit_code, 0) << keep.err;
  const double expected = fp32.json()["losses"].back().get<double>();
  EXPECT_NEAR(keep.json()["losses"].back().get<double>(), expected,
              GetParam().tolerance * expected);
  EXPECT_NE(keep.json()["weights_sha256"], fp32.json()["weights_sha256"]);
  EXPECT_LT(keep.json()["losses"].back(), keep.json()["losses"].front());
  const CommandResult run =
      RunFamily(GetParam(), {"--precision", GetParam().precision, "--budget",
                             "75%", "--stress", "1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["weights_sha256"], keep.json()["weights_sha256"]);
  EXPECT_EQ(run.json()["measured_arena_bytes"], run.json()["arena_bytes"]);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, Bf16,
    testing::Values(Family{"mlp", "digits-train.npz", "20", 0.005},
                    Family{"resnet18", "digits-train.npz", "6", 0.05},
                    Family{"gpt", "text-train.npz", "10", 0.005},
                    Family{"gpt", "text-train.npz", "10", 0.005, "autocast"}),
    [](const auto& info) {
      return absl::StrCat(info.param.name, "_", info.param.precision);
    });

int64_t ActivationBytes(const std::string& precision) {
  const CommandResult estimate =
      RunLoadline({"estimate", Zoo("gpt.onnx"), "--data", Zoo("text-train.npz"),
                   "--batch", "64", "--precision", precision, "--json"});
  EXPECT_EQ(estimate.exit_code, 0) << estimate.err;
  const nlohmann::json document = estimate.json();
  for (const auto& component : document["components"]) {
    if (component["name"] == "activations") return component["peak_bytes"];
  }
  return 0;
}

// A little more than half, because casts of weights and statistics are fp32.
TEST(Bf16, KeepsHalfTheActivationsOfAGpt) {
  const int64_t bf16 = ActivationBytes("bf16");
  EXPECT_GT(bf16, 0);
  EXPECT_LT(static_cast<double>(bf16),
            0.55 * static_cast<double>(ActivationBytes("fp32")));
}

TEST(Bf16, AutocastKeepsALittleMore) {
  const int64_t bf16 = ActivationBytes("bf16");
  const int64_t autocast = ActivationBytes("autocast");
  EXPECT_GT(autocast, bf16);
  EXPECT_LT(static_cast<double>(autocast), 1.2 * static_cast<double>(bf16));
}

TEST(Bf16, RefusesOtherPrecisions) {
  const CommandResult run =
      RunLoadline({"estimate", Zoo("mlp.onnx"), "--precision", "fp8"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, testing::HasSubstr("--precision"));
}

}  // namespace
}  // namespace loadline
