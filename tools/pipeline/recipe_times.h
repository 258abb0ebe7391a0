// Times in a recipe: steps, or epochs that become steps.
#ifndef LOADLINE_TOOLS_PIPELINE_RECIPE_TIMES_H_
#define LOADLINE_TOOLS_PIPELINE_RECIPE_TIMES_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/pipeline/recipe_fields.h"
#include "tools/pipeline/recipe_file.h"

namespace loadline::tools {

// The times of a section `process`, whose `unit` may be step or epoch.
class RecipeTimes {
 public:
  // Reads `unit`. `process` must outlive the object.
  static absl::StatusOr<RecipeTimes> Create(RecipeFields* process,
                                            const RecipeClock& clock);

  // A time under one of `steps`, in the section's unit, or under one of
  // `epochs`. Leaves `*to` as it is if there is none; returns whether one is.
  absl::StatusOr<bool> Read(std::initializer_list<const char*> steps,
                            std::initializer_list<const char*> epochs,
                            int64_t least, int64_t* to);
  // The same for a time that may be left out.
  absl::Status ReadOptional(std::initializer_list<const char*> steps,
                            std::initializer_list<const char*> epochs,
                            int64_t least, std::optional<int64_t>* to);

 private:
  RecipeTimes(RecipeFields* process, const RecipeClock& clock)
      : process_(*process), clock_(clock) {}
  absl::Status Epochs(const std::string& text, int64_t* to);

  RecipeFields& process_;
  RecipeClock clock_;
  bool in_epochs_ = false;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RECIPE_TIMES_H_
