// Progress rows of a long search.
#ifndef LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_
#define LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/solve/solve.h"

namespace loadline::tools {

// "   2.1 s    peak 22.8 MiB    step 173 ms    bound 170 ms    gap 1.8 %".
std::string ProgressRow(const planner::Progress& progress);

// Shows how a search stands while it exists. A row for an improvement after the
// search has taken a second, and then at most one a second; and, where
// `silence` passes without one, that it still searches. `show` is called in one
// thread at a time, of which one may be its own.
class SearchLog {
 public:
  using Show = std::function<void(const std::string&)>;
  explicit SearchLog(Show show, absl::Duration silence = absl::Seconds(10));
  ~SearchLog();
  SearchLog(const SearchLog&) = delete;
  SearchLog& operator=(const SearchLog&) = delete;

  // For SolveOptions::progress.
  void Improved(const planner::Progress& progress);

 private:
  void SpeakUp();

  const Show show_;
  const absl::Duration silence_;
  const absl::Time start_ = absl::Now();
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  double next_s_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Time spoke_ ABSL_GUARDED_BY(mutex_) = start_;
  std::optional<planner::Progress> best_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_SOLVE_PROGRESS_H_
