// Reads the data that the flags name.
#ifndef LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_
#define LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_

#include "absl/status/statusor.h"
#include "executor/train/data.h"
#include "models/graph.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// Errors: those of executor::LoadData; InvalidArgument for --data-memory.
absl::StatusOr<executor::DataSet> LoadDataFor(const LossFlags& flags,
                                              const models::Graph& graph);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOAD_DATA_H_
