// Shows a run's progress: one live line on a terminal, one line per interval
// elsewhere.
#ifndef LOADLINE_EXECUTOR_TRAIN_PROGRESS_H_
#define LOADLINE_EXECUTOR_TRAIN_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "executor/train/train.h"

namespace loadline::executor {

// "12/100  loss 2.3026  1034 examples/s  9 s left"
std::string ProgressText(const TrainProgress& progress);

//   ProgressLine line(stderr, isatty(2), /*interval=*/10);
//   options.progress = [&](const TrainProgress& p) { line.Show(p); };
class ProgressLine {
 public:
  // `interval`: steps between lines if `out` is not a terminal; the first and
  // the last step always have one. Does not own `out`.
  ProgressLine(std::FILE* out, bool terminal, int64_t interval);
  ~ProgressLine();  // ends a live line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const TrainProgress& progress);

 private:
  std::FILE* out_;
  const bool terminal_;
  const int64_t interval_;
  bool live_ = false;
  bool first_ = true;
  int64_t shown_ns_ = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_PROGRESS_H_
