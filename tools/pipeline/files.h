// Reads and writes whole files.
#ifndef LOADLINE_TOOLS_PIPELINE_FILES_H_
#define LOADLINE_TOOLS_PIPELINE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::tools {

// A text file of at most 1 GiB, or a pipe. Errors as in
// planner/base/read_file.h.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces `path` as a whole or, after an error such as a full disk, not at all
// (planner/base/atomic_file.h). Pipes and devices are written directly. "-"
// is stdout.
absl::Status WriteFile(const std::string& path, absl::string_view text);

// The status, with the file's name before its message.
absl::Status InFile(const std::string& path, const absl::Status& status);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_FILES_H_
