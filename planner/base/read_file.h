// Reads whole files that a user names.
#ifndef LOADLINE_PLANNER_BASE_READ_FILE_H_
#define LOADLINE_PLANNER_BASE_READ_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace loadline::planner {

// The bytes of a regular file or a pipe. Errors name the path: NotFound;
// InvalidArgument for a folder or a device, which may never end;
// ResourceExhausted beyond `most_bytes`, of which a pipe is read no further;
// Unavailable with the system's reason.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          int64_t most_bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_READ_FILE_H_
