// Tested in tests/end_to_end/stored_data_test.cc.
#include "tools/pipeline/load_data.h"

#include "executor/train/data_digest.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/units.h"

namespace loadline::tools {

absl::Status NeedsData(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      what,
      ": needs --data FILE, an .npz file or a folder of .npy files with an "
      "array for every input of the model and one named 'target'"));
}

absl::StatusOr<executor::DataSet> LoadDataFor(const LossFlags& flags,
                                              const models::Graph& graph) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t memory_bytes,
                            ParseByteCount("--data-memory", flags.data_memory));
  return executor::LoadData(flags.data, graph,
                            {.most_bytes_in_memory = memory_bytes});
}

void WarnOfOtherData(const std::string& checkpoint,
                     const executor::RunPosition& position,
                     const std::string& path, const std::string& digest) {
  const std::string differs = executor::OtherData(position.data, digest);
  if (differs.empty()) return;
  spdlog::warn(
      "--resume: the run of {} had other data than {} ({}); the steps that are "
      "left take their batches from the data given now",
      checkpoint, path, differs);
}

}  // namespace loadline::tools
