#include "tools/pipeline/name_value.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace loadline::tools {

absl::StatusOr<std::pair<std::string, std::string>> SplitNameValue(
    const std::string& flag, const std::string& text) {
  const std::pair<std::string, std::string> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (pair.first.empty() || pair.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " '", text, "': expected NAME=VALUE"));
  }
  return pair;
}

}  // namespace loadline::tools
