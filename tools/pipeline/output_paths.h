// Keeps a command from writing over what it reads, or over its own outputs.
#ifndef LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_
#define LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// A file of the command line and the flag that names it. "" is not given, "-"
// is standard output.
struct NamedPath {
  std::string flag;
  std::string path;
};

// What the verbs that plan read: MODEL, --data and --machine.
std::vector<NamedPath> InputPaths(const StepFlags& flags);

// To be called before anything is written. InvalidArgument, naming both flags,
// where an output is the same file as an input or as another output: by name,
// through a link, or as the external data of an ONNX model among the inputs.
// Pipes and devices may be named twice; standard output has one writer.
absl::Status CheckOutputPaths(const std::vector<NamedPath>& inputs,
                              const std::vector<NamedPath>& outputs);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_
