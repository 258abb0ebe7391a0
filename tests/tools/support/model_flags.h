// Flags for the zoo's small model on a fixed machine.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_MODEL_FLAGS_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_MODEL_FLAGS_H_

#include <string>

#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

std::string ZooPath(const std::string& file);  // models/zoo/FILE
// A profile with rates only, so that times do not depend on this machine.
std::string FixedMachinePath();
StepFlags MlpFlags();

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_MODEL_FLAGS_H_
