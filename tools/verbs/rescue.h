// Keeps a run whose trained model cannot be written.
#ifndef LOADLINE_TOOLS_VERBS_RESCUE_H_
#define LOADLINE_TOOLS_VERBS_RESCUE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"
#include "tools/pipeline/model_files.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {

// For TrainOptions::rescue_paths: beside the trained model, and in the folder
// for temporary files, under names that no file has. None if the model's files
// are as they were and, at the end, there is room; or if nothing shall be
// written. Logs the reason.
std::vector<std::string> RescuePaths(const RunFlags& flags,
                                     const ModelFiles& files,
                                     const models::Graph& graph, bool ended);

// `written`, and where the run was kept instead, if it was.
absl::Status WithRescue(const absl::Status& written,
                        const std::string& rescue_path);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RESCUE_H_
