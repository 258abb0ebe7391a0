// Formats and parses bytes and times for users.
#ifndef LOADLINE_TOOLS_CLI_UNITS_H_
#define LOADLINE_TOOLS_CLI_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "planner/base/units.h"
#include "planner/solve/budget.h"

namespace loadline::tools {

using planner::FormatBytes;
using planner::FormatNs;
// "12,345".
std::string FormatCount(int64_t count);
// "52.3 %" of `whole`; "-" if whole is 0.
std::string FormatPercent(double part, double whole);

// "3GiB", "3G" (the same), "3GB", "1.5 MiB", "4096B", "60%" or "smallest",
// exactly as written: no rounding but to whole bytes and to 1e-7 percent. A
// bare number, a negative or zero one, an unknown unit: InvalidArgument with a
// hint.
absl::StatusOr<planner::Budget> ParseBudget(absl::string_view text);

// The same for another flag's bytes: no share, no "smallest", and zero too.
absl::StatusOr<int64_t> ParseByteCount(absl::string_view flag,
                                       absl::string_view text);

// "10s", "500ms", "2m".
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_UNITS_H_
