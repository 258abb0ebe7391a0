// What a model loses with each group's channels, and the recipe that is drafted
// from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

TEST(Sensitivity, DraftsARecipeThatRuns) {
  const std::string folder = TestFolder("sensitivity");
  const std::string trained = folder + "/trained.onnx";
  ASSERT_EQ(
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--epochs", "4", "-o", trained})
          .exit_code,
      0);
  const std::string recipe = folder + "/recipe.yaml";
  const CommandResult swept =
      RunLoadline({"sensitivity", trained, "--data", Zoo("digits-test.npz"),
                   "--most", "0.05", "-o", recipe, "--json"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const auto result = swept.json();
  ASSERT_EQ(result["groups"].size(), 2u);
  for (const auto& group : result["groups"]) {
    ASSERT_EQ(group["points"].size(), 3u);
    EXPECT_LE(group["points"][2]["accuracy"], result["whole"]["accuracy"]);
    EXPECT_LE(group["points"][2]["accuracy"].get<double>(),
              group["points"][0]["accuracy"].get<double>() + 0.02);
  }
  const CommandResult plan = RunLoadline(
      {"plan", trained, "--recipe", recipe, "--steps", "100", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.json()["phases"].size(), 2u);
  // A file without entries would be refused as a recipe.
  const std::string none = folder + "/none.yaml";
  const CommandResult strict =
      RunLoadline({"sensitivity", trained, "--data", Zoo("digits-test.npz"),
                   "--most", "0", "--sparsities", "0.99", "-o", none});
  ASSERT_EQ(strict.exit_code, 0) << strict.err;
  EXPECT_THAT(strict.err,
              testing::HasSubstr("no group loses channels within --most 0 %"));
  EXPECT_FALSE(std::filesystem::exists(none));
}

// Nothing was measured, which must not read as a result.
TEST(Sensitivity, WantsOneBatchOfData) {
  const CommandResult swept =
      RunLoadline({"sensitivity", Zoo("mlp.onnx"), "--data",
                   Zoo("digits-test.npz"), "--batch", "1000"});
  EXPECT_EQ(swept.exit_code, 2);
  EXPECT_THAT(swept.err,
              testing::HasSubstr("less than one batch of 1000; give a smaller "
                                 "--batch, or more data"));
}

}  // namespace
}  // namespace loadline
