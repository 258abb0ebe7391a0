// Loss and accuracy of a model over a whole data set.
#ifndef LOADLINE_EXECUTOR_EVALUATE_H_
#define LOADLINE_EXECUTOR_EVALUATE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "executor/data.h"
#include "executor/program.h"

namespace loadline::executor {

struct Evaluation {
  int64_t examples = 0;
  double loss = 0;  // mean over the examples
  // Share of targets whose class was found; none where the graph does not
  // count them.
  std::optional<double> accuracy;
  bool interrupted = false;  // then over the examples so far
};

// Runs every example once, in order. `full` takes whole batches; `remainder`
// takes the last examples%batch of them and may be null where there are none
// (InvalidArgument otherwise, or where its batch is another number). The loss
// is the first output f32[]; correct answers are counted by the first output
// i64[], out of the elements of the last input, the target. Does not change
// the programs' persistent values if the graphs do not.
absl::StatusOr<Evaluation> Evaluate(Program& full, Program* remainder,
                                    const DataSet& data,
                                    const std::atomic<bool>* stop = nullptr);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_EVALUATE_H_
