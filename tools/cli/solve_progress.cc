// The search reports every improvement; this limits the rows to one a second.
// Tested by tests/tools/cli/solve_progress_test.cc.
#include "tools/cli/solve_progress.h"

#include <utility>

#include "fmt/format.h"
#include "tools/cli/units.h"

namespace loadline::tools {

std::string ProgressRow(const planner::Progress& progress) {
  return fmt::format(
      "{:6.1f} s   peak {:>9}   step {:>8}   bound {:>8}   gap {}",
      progress.elapsed_s, FormatBytes(progress.peak_bytes),
      FormatNs(progress.step_ns), FormatNs(progress.bound_step_ns),
      FormatPercent(
          static_cast<double>(progress.step_ns - progress.bound_step_ns),
          static_cast<double>(progress.step_ns)));
}

std::function<void(const planner::Progress&)> ProgressRows(
    std::function<void(const std::string&)> show) {
  return [show = std::move(show),
          next_s = 1.0](const planner::Progress& progress) mutable {
    if (progress.elapsed_s < next_s) return;
    next_s = progress.elapsed_s + 1;
    show(ProgressRow(progress));
  };
}

}  // namespace loadline::tools
