// Reads a compression recipe from a YAML or JSON file: docs/compression.md.
#ifndef LOADLINE_TOOLS_PIPELINE_RECIPE_FILE_H_
#define LOADLINE_TOOLS_PIPELINE_RECIPE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/compress/recipe.h"

namespace loadline::tools {

// The length of the run, for steps that the recipe gives as epochs or as shares
// of the run. 0: not known; then a recipe that needs it is an error.
struct RecipeClock {
  int64_t steps = 0;
  int64_t steps_per_epoch = 0;
};

// Keys that the file leaves out have their defaults; aliases are resolved and
// all times are in steps. InvalidArgument naming file, line, entry and key: an
// unknown key or one given twice, a wrong type, a value out of range, an end
// before the start or after the run, two entries of one name. Errors of
// planner::ReadWholeFile.
absl::StatusOr<passes::Recipe> ReadRecipeFile(const std::string& path,
                                              const RecipeClock& clock);

// The same from text. `file` is for messages.
absl::StatusOr<passes::Recipe> ReadRecipe(const std::string& file,
                                          absl::string_view text,
                                          const RecipeClock& clock);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RECIPE_FILE_H_
