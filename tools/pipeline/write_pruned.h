// Writes the model that a run with a recipe trained.
#ifndef LOADLINE_TOOLS_PIPELINE_WRITE_PRUNED_H_
#define LOADLINE_TOOLS_PIPELINE_WRITE_PRUNED_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/cli/flags.h"
#include "tools/pipeline/train_phases.h"

namespace loadline::tools {

// Sizes of model files with their external data.
struct FileBytes {
  int64_t before = 0;
  int64_t after = 0;
};

// The model of `flags` without the channels that the phases removed, with the
// trained contents, to `path`. Takes the contents out of `result`. Errors:
// those of the export.
absl::StatusOr<FileBytes> WritePruned(const ModelFlags& flags,
                                      const std::string& path,
                                      PhasedResult* result);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_WRITE_PRUNED_H_
