// What a run reports of itself as it goes, as JSON lines: one object a line,
// one line for each step and each evaluation.
#ifndef LOADLINE_EXECUTOR_TRAIN_METRICS_H_
#define LOADLINE_EXECUTOR_TRAIN_METRICS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/train/evaluate.h"
#include "executor/train/train.h"

namespace loadline::executor {

class MetricsFile {
 public:
  // Begins a new file, or, for a run that goes on after `done` > 0 steps, keeps
  // the lines of these steps and drops later ones; with `evaluates_again`, also
  // the evaluation of step `done`. InvalidArgument: the file cannot be written,
  // or holds other lines.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> Open(
      const std::string& path, int64_t done, bool evaluates_again = false);
  ~MetricsFile();

  // {"step": 1, "loss": 2.3, "learning_rate": 0.001, "examples_per_s": 950}
  void Add(const TrainProgress& progress);
  // {"step": 100, "eval_loss": 0.7, "eval_accuracy": 0.8, "eval_examples": 300}
  void AddEvaluation(int64_t step, const Evaluation& evaluation);

  // The first error of writing: a full disk does not end the run.
  absl::Status status() const;

 private:
  MetricsFile(std::string path, std::FILE* file)
      : path_(std::move(path)), file_(file) {}
  void Write(const std::string& line);

  const std::string path_;
  std::FILE* const file_;
  int error_ = 0;  // errno
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_METRICS_H_
