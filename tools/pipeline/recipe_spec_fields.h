// What a recipe's entry says about its method, degree and process.
#ifndef LOADLINE_TOOLS_PIPELINE_RECIPE_SPEC_FIELDS_H_
#define LOADLINE_TOOLS_PIPELINE_RECIPE_SPEC_FIELDS_H_

#include "absl/status/status.h"
#include "passes/compress/recipe.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/recipe_fields.h"
#include "tools/pipeline/recipe_file.h"

namespace loadline::tools {

// The sections of one entry.
struct RecipeSections {
  RecipeFields method;
  RecipeFields object;
  RecipeFields degree;
  RecipeFields process;

  absl::Status Finish() const {
    LOADLINE_RETURN_IF_ERROR(method.Finish());
    LOADLINE_RETURN_IF_ERROR(object.Finish());
    LOADLINE_RETURN_IF_ERROR(degree.Finish());
    return process.Finish();
  }
};

// Each reads the keys of its kind; what `spec` has before is the default.
// Errors: InvalidArgument, as ReadRecipeFile.
absl::Status ReadPrune(RecipeSections* sections, const RecipeClock& clock,
                       passes::PruneSpec* spec);
absl::Status ReadQuantize(RecipeSections* sections, const RecipeClock& clock,
                          passes::QuantizeSpec* spec);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RECIPE_SPEC_FIELDS_H_
