// Errors of later phases, found before the first.
#include "tools/pipeline/check_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/recipe_file.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const std::string& second_entry) {
  const StepFlags flags = MlpFlags();
  auto model = ImportModel(flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto recipe = ReadRecipe(
      "r.yaml",
      absl::StrCat("- method: {kind: prune}\n  object: {op_names: [fc1]}\n"
                   "  degree: {sparsity: 0.5}\n  process: {end_step: 10}\n",
                   second_entry),
      {});
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  return CheckAllPhases(std::move(model->graph), *recipe, flags).status();
}

TEST(CheckAllPhases, FindsWhatALaterPhaseCannotDo) {
  EXPECT_TRUE(Check("").ok()) << Check("");
  EXPECT_THAT(std::string(Check("- method: {kind: prune}\n"
                                "  object: {op_names: [no_such]}\n"
                                "  degree: {sparsity: 0.5}\n"
                                "  process: {start_step: 20, end_step: 30}\n")
                              .message()),
              HasSubstr("r.yaml:5: entry 'entry2': object.op_names"));
  EXPECT_THAT(std::string(Check("- method: {kind: prune, criterion: bn_scale}\n"
                                "  object: {op_names: [fc2]}\n"
                                "  degree: {sparsity: 0.5}\n"
                                "  process: {start_step: 20, end_step: 30}\n")
                              .message()),
              HasSubstr("entry 'entry2': method.criterion: group"));
}

// Not ignored: nothing would be pruned, and the run would succeed.
TEST(CheckAllPhases, RefusesEntriesThatRemoveNothing) {
  const auto second = [](const std::string& method, const std::string& degree) {
    return std::string(
        Check(absl::StrCat("- method: {kind: prune", method,
                           "}\n  object: {op_names: [fc2]}\n  degree: {",
                           degree, "}\n  process: {end_step: 12}\n"))
            .message());
  };
  EXPECT_THAT(second("", "sparsity: 0.001"),
              HasSubstr("entry 'entry2': degree: sparsity and round_to "
                        "together remove no channel of groups with 128"));
  EXPECT_THAT(second("", "sparsity: 0.5, round_to: 1000"),
              HasSubstr("remove no channel"));
  EXPECT_THAT(second(", granularity: head", "sparsity: 0.5"),
              HasSubstr("its channels are no attention heads"));
  EXPECT_EQ(second("", "sparsity: 0.5"), "");
}

TEST(CheckAllPhases, RefusesWidthsThatCutFours) {
  EXPECT_THAT(std::string(Check("- method: {kind: prune, granularity: '2:4'}\n"
                                "  object: {op_names: [fc2]}\n"
                                "  degree: {sparsity: 0.5}\n"
                                "  process: {end_step: 10}\n")
                              .message()),
              HasSubstr("r.yaml:1: entry 'entry1': degree.round_to: 1 beside "
                        "entry 'entry2' of 2:4"));
}

TEST(CheckAllPhases, RefusesQuantizersThatPruningWouldBreak) {
  // The channels of the first entry go at step 10.
  EXPECT_THAT(std::string(Check("- method: {kind: quantize}\n"
                                "  process: {start_step: 9}\n")
                              .message()),
              HasSubstr("entry 'entry2': process.start_step: quantization "
                        "starts before step 10"));
  EXPECT_TRUE(Check("- method: {kind: quantize}\n"
                    "  process: {start_step: 10}\n")
                  .ok());
  const std::string masks =
      "- method: {kind: prune, granularity: unstructured}\n"
      "  object: {op_names: [fc2]}\n"
      "  degree: {sparsity: 0.5}\n  process: {end_step: 12}\n"
      "- method: {kind: quantize, quantizer: ";
  EXPECT_THAT(
      std::string(
          Check(masks + "kmeans}\n  process: {start_step: 20}\n").message()),
      HasSubstr("entry 'entry2': object: weights of 'fc2.weight'"));
  EXPECT_TRUE(Check(masks + "lsq}\n  process: {start_step: 20}\n").ok());
}

}  // namespace
}  // namespace loadline::tools
