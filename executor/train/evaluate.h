// Loss and accuracy of a model over a whole data set.
#ifndef LOADLINE_EXECUTOR_TRAIN_EVALUATE_H_
#define LOADLINE_EXECUTOR_TRAIN_EVALUATE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/program/program.h"
#include "executor/train/data.h"

namespace loadline::executor {

struct Evaluation {
  int64_t examples = 0;
  double loss = 0;  // mean over the examples
  // Share of targets whose class was found; none where the graph does not
  // count them.
  std::optional<double> accuracy;
};

// Batches add up, of several programs one after the other: the last examples
// are no whole batch of the first.
class Evaluator {
 public:
  // `data` outlives it.
  explicit Evaluator(const DataSet& data) : data_(data) {}

  // Runs every example that makes a whole batch of the program's, in order,
  // from where it stands. The loss is the first output f32[]; correct answers
  // are counted by the first output i64[], out of the elements of the last
  // input, the target. Does not change the program's persistent values if its
  // graph does not. InvalidArgument: the data does not fit. Cancelled: `stop`
  // was set before the last batch.
  absl::Status Run(Program& program, const std::atomic<bool>* stop = nullptr);

  // Examples that no program has taken.
  int64_t left() const { return data_.examples - examples_; }
  // Of the examples so far. Requires one at least.
  Evaluation result() const;

 private:
  absl::Status AddBatch(Program& program, int64_t batch);

  const DataSet& data_;
  double loss_ = 0;  // in double, so that the batch does not show in it
  int64_t examples_ = 0;
  int64_t correct_ = 0;
  int64_t targets_ = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_EVALUATE_H_
