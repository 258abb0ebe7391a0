// The search reports every improvement, and may find none for long. Tested by
// tests/tools/cli/solve_progress_test.cc.
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

SearchLog::SearchLog(Show show, absl::Duration silence)
    : show_(std::move(show)),
      silence_(silence),
      thread_([this] { SpeakUp(); }) {}

SearchLog::~SearchLog() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.join();
}

void SearchLog::Improved(const planner::Progress& progress) {
  absl::MutexLock lock(&mutex_);
  best_ = progress;
  if (progress.elapsed_s < next_s_) return;
  next_s_ = progress.elapsed_s + 1;
  spoke_ = absl::Now();
  show_(ProgressRow(progress));
}

void SearchLog::SpeakUp() {
  absl::MutexLock lock(&mutex_);
  while (!ended_) {
    const absl::Time at = spoke_ + silence_;
    if (mutex_.AwaitWithDeadline(absl::Condition(&ended_), at)) return;
    if (absl::Now() < spoke_ + silence_) continue;  // a row was shown meanwhile
    spoke_ = absl::Now();
    const double elapsed_s = absl::ToDoubleSeconds(spoke_ - start_);
    show_(best_.has_value()
              ? fmt::format("{:6.1f} s   still searching; the best plan takes "
                            "{} a step",
                            elapsed_s, FormatNs(best_->step_ns))
              : fmt::format("{:6.1f} s   still searching; no plan yet",
                            elapsed_s));
  }
}

}  // namespace loadline::tools
