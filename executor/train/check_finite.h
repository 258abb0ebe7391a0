// Are the numbers that training leaves behind finite?
#ifndef LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_
#define LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "executor/program/program.h"
#include "models/graph.h"

namespace loadline::executor {

// InvalidArgument, with the name, if a parameter or optimizer state holds an
// infinity or NaN. The loss of a step is computed before its update, so that a
// finite loss does not say that the weights still are. Reads every saved value
// back from the device once.
absl::Status CheckFinite(Program& program);

// A row of an input, counted from 0, of the `rows` along its first axis.
struct InputRow {
  size_t input = 0;  // of the graph's inputs
  int64_t row = 0;
  int64_t rows = 0;
};

// The first infinity or NaN in the data of a step. `inputs` as for
// Program::Run.
std::optional<InputRow> FirstNotFinite(
    const models::Graph& graph, absl::Span<const std::byte* const> inputs);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_CHECK_FINITE_H_
