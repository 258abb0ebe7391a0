// Errors of later phases, found before the first.
#include "tools/pipeline/check_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/plan_training_step.h"
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

}  // namespace
}  // namespace loadline::tools
