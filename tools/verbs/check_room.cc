// Tested by tests/end_to_end/bad_input_test.cc.
#include "tools/verbs/check_room.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

// Bytes of the file that the trained model is written to, or fewer: it has the
// weights of the graph, and where these are in the model's own file, its types.
int64_t LeastModelBytes(const RunFlags& flags, const models::Graph& graph) {
  int64_t weights = 0;
  for (const models::Value& value : graph.values) {
    if (value.kind == models::ValueKind::kParameter) {
      weights += value.type.bytes();
    }
  }
  std::error_code error;
  const auto file = static_cast<int64_t>(
      std::filesystem::file_size(flags.step.model.model, error));
  return !error && file >= weights / 4 ? std::min(weights, file) : weights;
}

// What writing would fail with after the last step. ResourceExhausted, naming
// the path: `bytes` more do not fit its file system, or a file may not be so
// large.
absl::Status CheckRoom(const std::string& path, int64_t bytes) {
  struct stat info;
  if (path.empty() ||
      (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))) {
    return absl::OkStatus();
  }
  const auto needed = static_cast<uint64_t>(bytes);
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      needed > limit.rlim_cur) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": no room for the trained model: it has ", bytes,
                     " bytes or more, and a file may have ", limit.rlim_cur,
                     " (ulimit -f)"));
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  const std::filesystem::space_info space =
      std::filesystem::space(folder, error);
  if (error || needed <= space.available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      path, ": no room for the trained model: it has ", bytes,
      " bytes or more, and the disk has ", space.available, " left"));
}

}  // namespace

absl::Status CheckRoomForModels(const RunFlags& flags,
                                const models::Graph& graph) {
  const int64_t bytes = LeastModelBytes(flags, graph);
  for (const std::string& path :
       {flags.out, flags.training.best, flags.training.average}) {
    LOADLINE_RETURN_IF_ERROR(CheckRoom(path, bytes));
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
