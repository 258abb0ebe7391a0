// Tested by tests/end_to_end/rescue_test.cc.
#include "tools/pipeline/model_files.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/import.h"
#include "planner/base/read_file.h"
#include "planner/base/sha256.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

// Model files are larger only if they have their weights inside; of these the
// time of the last write has to do.
constexpr int64_t kMostHashedBytes = int64_t{64} << 20;

absl::StatusOr<std::string> HashOf(const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string bytes,
                            planner::ReadWholeFile(path, kMostHashedBytes));
  return planner::Sha256Hex(bytes);
}

}  // namespace

absl::StatusOr<ModelFiles::File> ModelFiles::Look(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the file is gone since the run began"));
  }
  return File{.path = path,
              .bytes = static_cast<int64_t>(info.st_size),
              .written_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 +
                            info.st_mtim.tv_nsec};
}

absl::StatusOr<ModelFiles> ModelFiles::Of(const std::string& model) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                            models::ExternalDataFiles(model));
  paths.insert(paths.begin(), model);
  ModelFiles all;
  for (const std::string& path : paths) {
    LOADLINE_ASSIGN_OR_RETURN(File file, Look(path));
    if (path == model && file.bytes <= kMostHashedBytes) {
      LOADLINE_ASSIGN_OR_RETURN(file.sha256, HashOf(path));
    }
    all.files_.push_back(std::move(file));
  }
  return all;
}

absl::Status ModelFiles::CheckUnchanged() const {
  for (const File& before : files_) {
    LOADLINE_ASSIGN_OR_RETURN(const File now, Look(before.path));
    if (now.bytes == before.bytes && now.written_ns == before.written_ns) {
      continue;
    }
    if (!before.sha256.empty() && now.bytes == before.bytes) {
      LOADLINE_ASSIGN_OR_RETURN(const std::string hash, HashOf(before.path));
      if (hash == before.sha256) continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(before.path,
                     ": the file has changed since the run began, so the "
                     "trained weights may not be its own"));
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
