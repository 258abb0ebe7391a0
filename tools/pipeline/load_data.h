// Reads the data that the flags name.
#ifndef LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_
#define LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data.h"
#include "models/graph.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// The error where `what`, a verb or a flag, runs steps and --data is missing.
absl::Status NeedsData(absl::string_view what);

// Errors: those of executor::LoadData; InvalidArgument for --data-memory.
absl::StatusOr<executor::DataSet> LoadDataFor(const LossFlags& flags,
                                              const models::Graph& graph);

// Warns if the data of the checkpoint's run differs from the data of the file
// or folder `path`, whose DigestOfData is `digest`.
void WarnOfOtherData(const std::string& checkpoint,
                     const executor::RunPosition& position,
                     const std::string& path, const std::string& digest);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_
