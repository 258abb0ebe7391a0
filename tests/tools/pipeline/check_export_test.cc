// Exports that would fail after training, found before it.
#include "tools/pipeline/check_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "passes/compress/quantized_model.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/check_phases.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/recipe_file.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

TEST(CheckExport, MakesTheExportWithoutWritingIt) {
  const StepFlags flags = MlpFlags();
  const auto imported = ImportModel(flags.model, /*training=*/true);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto names = passes::FileNames(imported->graph, imported->value_of);
  for (const char* quantizer : {"uniform", "lsq", "kmeans"}) {
    const auto recipe = ReadRecipe(
        "r.yaml",
        std::string("- method: {kind: prune}\n  degree: {sparsity: 0.5}\n"
                    "  process: {end_step: 10}\n"
                    "- method: {kind: quantize, quantizer: ") +
            quantizer + "}\n  process: {start_step: 20}\n",
        {});
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    const auto last = CheckAllPhases(imported->graph, *recipe, flags);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(CheckExport(flags.model, imported->graph, *last, *recipe, names),
              absl::OkStatus());
    // As of a model whose file does not have what is quantized.
    EXPECT_THAT(std::string(CheckExport(flags.model, imported->graph, *last,
                                        *recipe, {})
                                .message()),
                HasSubstr("the file has no such tensor"));
    // A graph that no pruning of this file gives.
    models::Graph other = *last;
    other.nodes.pop_back();
    EXPECT_FALSE(
        CheckExport(flags.model, imported->graph, other, *recipe, names).ok());
  }
}

}  // namespace
}  // namespace loadline::tools
