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
  double loss = 0;   // mean over the examples, or their sum
  bool sum = false;  // which
  // Share of targets that were classified correctly; none where the graph does
  // not count them.
  std::optional<double> accuracy;
};

// InvalidArgument: no entry of the last input, the target, counts in the loss,
// whose mean would be no number. Reads rows up to the first that does.
absl::Status CheckHasTargets(const DataSet& data, const models::Graph& graph);

// Whether the loss leaves out targets of kIgnoredTarget: all of its
// SoftmaxCrossEntropy, and one at least, read the last input as it is.
bool IgnoresTargets(const models::Graph& graph);

// Accumulates over batches, also of several programs: a second one with a
// smaller batch takes the remaining examples.
class Evaluator {
 public:
  // `data` must outlive the evaluator.
  // `sum`: the loss of a batch is the sum over its examples, not their mean.
  explicit Evaluator(const DataSet& data, bool sum = false)
      : data_(data), sum_(sum) {}

  // Runs as many whole batches of the program as examples remain, in order. The
  // loss is the first output of type f32[]. Correct answers are counted by the
  // first output of type i64[], out of the elements of the last input, the
  // target, that are not ignored. Changes the program's persistent values only
  // if its graph does. InvalidArgument: the data does not fit. Cancelled:
  // `stop` was set before the last batch.
  absl::Status Run(Program& program, const std::atomic<bool>* stop = nullptr);

  // Runs the remaining examples, fewer than a batch of the program, with copies
  // of the last one, whose part of the loss is taken out again. Requires a loss
  // that is a mean or a sum over examples, or IgnoresTargets. Errors: those of
  // Run.
  absl::Status RunRest(Program& program);

  // Examples that have not been evaluated.
  int64_t left() const { return data_.examples - examples_; }
  // Result over the examples so far. Requires at least one.
  Evaluation result() const;

 private:
  absl::Status Check(const Program& program) const;
  absl::Status AddBatch(Program& program, int64_t batch);
  // The first `examples` of the batch count.
  absl::Status AddStep(Program& program, int64_t examples,
                       absl::Span<const std::byte* const> inputs);
  // The next `examples`, and copies of the last of all up to a batch.
  absl::StatusOr<std::vector<const std::byte*>> Padded(int64_t examples,
                                                       int64_t batch);

  const DataSet& data_;
  const bool sum_;
  // Of a batch, for each column whose rows are stored or copied.
  std::vector<std::vector<std::byte>> buffers_;
  double loss_ = 0;    // sum over batches, weighted if it is a mean
  double weight_ = 0;  // examples, less those without a target
  int64_t examples_ = 0;
  int64_t correct_ = 0;
  int64_t targets_ = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_EVALUATE_H_
