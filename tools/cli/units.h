// Formats and parses bytes and times for users.
#ifndef LOADLINE_TOOLS_CLI_UNITS_H_
#define LOADLINE_TOOLS_CLI_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "planner/base/units.h"

namespace loadline::tools {

using planner::FormatBytes;
using planner::FormatNs;
// "12,345".
std::string FormatCount(int64_t count);
// "52.3 %" of `whole`; "-" if whole is 0.
std::string FormatPercent(double part, double whole);

// A budget from the command line: bytes, or a share of a whole known later.
struct Budget {
  int64_t bytes = 0;  // if percent is 0
  double percent = 0;

  // Rounded up to a whole byte.
  int64_t Of(int64_t whole_bytes) const;
};

// "3GiB", "3GB", "1.5 MiB", "4096B", "60%". InvalidArgument with a hint for a
// number without unit, a negative or zero one, or an unknown unit.
absl::StatusOr<Budget> ParseBudget(absl::string_view text);

// "10s", "500ms", "2m".
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_UNITS_H_
