// Flags of the form NAME=VALUE.
#ifndef LOADLINE_TOOLS_PIPELINE_NAME_VALUE_H_
#define LOADLINE_TOOLS_PIPELINE_NAME_VALUE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace loadline::tools {

// `text` split at the first '='. InvalidArgument, naming the flag, if one of
// the two is empty.
absl::StatusOr<std::pair<std::string, std::string>> SplitNameValue(
    const std::string& flag, const std::string& text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_NAME_VALUE_H_
