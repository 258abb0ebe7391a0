#include "tests/tools/support/model_flags.h"

#include "absl/strings/str_cat.h"

namespace loadline::tools {

// Relative, because tests run in the repository's root and goldens contain
// paths.
std::string ZooPath(const std::string& file) {
  return absl::StrCat("models/zoo/", file);
}

std::string FixedMachinePath() { return "tests/tools/machine.json"; }

StepFlags MlpFlags() {
  StepFlags flags;
  flags.model.model = ZooPath("mlp.onnx");
  flags.plan.machine = FixedMachinePath();
  return flags;
}

}  // namespace loadline::tools
