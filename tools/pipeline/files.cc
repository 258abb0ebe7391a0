// Whole files. Tested by tests/tools/pipeline/files_test.cc.
#include "tools/pipeline/files.h"

#include "absl/strings/str_cat.h"
#include "planner/base/atomic_file.h"
#include "planner/base/read_file.h"
#include "tools/cli/standard_output.h"

namespace loadline::tools {
namespace {

// The plan of a step of 10^5 nodes has 50 MB.
constexpr int64_t kMostTextBytes = int64_t{1} << 30;

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  return planner::ReadWholeFile(path, kMostTextBytes);
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  if (path == "-") {
    WriteToStandardOutput(text);
    return FlushStandardOutput();
  }
  return planner::WriteWholeFile(path, text);
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace loadline::tools
