// Prevents a command from overwriting its inputs, or one output with another.
#ifndef LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_
#define LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// A path from the command line and its flag. "": not given; "-": standard
// output.
struct NamedPath {
  std::string flag;
  std::string path;
  bool may_be_folder = false;
};

// The file of data, or the folder and each array in it.
void AddDataPaths(const std::string& flag, const std::string& data,
                  std::vector<NamedPath>* paths);

// Inputs of the verbs that plan: MODEL, --data, --machine and the profiles of
// this machine.
std::vector<NamedPath> InputPaths(const StepFlags& flags);

// Call before anything is written. InvalidArgument, naming both flags, if an
// output is the same file as an input, as a file of --config or as another
// output: by name, through a link, or as external data of an ONNX model among
// the inputs; or if an output is a folder and may not be one, or its own folder
// is missing or cannot be written to. Pipes and devices may be given twice,
// standard output only once.
absl::Status CheckOutputPaths(const std::vector<NamedPath>& inputs,
                              const std::vector<NamedPath>& outputs);

// Logs which of these files were written. Call after the command succeeded.
void LogWritten(const std::vector<NamedPath>& outputs);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_OUTPUT_PATHS_H_
