// Reading and writing whole files.
#ifndef LOADLINE_TOOLS_PIPELINE_FILES_H_
#define LOADLINE_TOOLS_PIPELINE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::tools {

// NotFound or InvalidArgument (a folder) naming the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes to a temporary name beside `path` and renames, so that a full disk
// leaves the old file or none. "-" is stdout.
absl::Status WriteFile(const std::string& path, absl::string_view text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_FILES_H_
