#include "tests/end_to_end/recipe_runs.h"

#include <gtest/gtest.h>

#include <fstream>

namespace loadline {
namespace {

std::vector<std::string> Joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::string WriteRecipe(const std::string& folder, const std::string& text) {
  const std::string path = folder + "/recipe.yaml";
  std::ofstream(path) << text;
  return path;
}

CommandResult RunMlpUnder(const std::string& recipe,
                          const std::vector<std::string>& more,
                          const CommandOptions& options) {
  return RunLoadline(
      Joined({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
              "--seed", "3", "--recipe", recipe, "--json"},
             more),
      options);
}

CommandResult InterruptAndResume(const std::string& recipe,
                                 const std::vector<std::string>& flags,
                                 const std::string& stop,
                                 const std::string& checkpoint,
                                 const std::vector<std::string>& at_end) {
  const std::vector<std::string> both =
      Joined(flags, {"--checkpoint", checkpoint});
  const CommandResult part =
      RunMlpUnder(recipe, Joined(both, {"--overwrite", "--log-every", "1"}),
                  {.interrupt_when = stop});
  EXPECT_EQ(part.exit_code, 130) << stop << ": " << part.err;
  CommandResult rest =
      RunMlpUnder(recipe, Joined(Joined(both, {"--resume"}), at_end));
  EXPECT_EQ(rest.exit_code, 0) << stop << ": " << rest.err;
  return rest;
}

}  // namespace loadline
