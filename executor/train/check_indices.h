// Indices in the data: class labels and rows of embeddings.
#ifndef LOADLINE_EXECUTOR_TRAIN_CHECK_INDICES_H_
#define LOADLINE_EXECUTOR_TRAIN_CHECK_INDICES_H_

#include "absl/status/status.h"
#include "executor/train/data.h"
#include "models/graph.h"

namespace loadline::executor {

// `data` has a column for each input of `graph`. InvalidArgument if a number in
// it is a label outside the classes of a loss, or the index of a row that a
// Gather's table does not have; it names the array, the example, the position
// in it and the number. Follows an input through views and casts only: a kernel
// finds other indices when they are computed.
absl::Status CheckIndices(const DataSet& data, const models::Graph& graph);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_CHECK_INDICES_H_
