// Is the batch the first axis wherever data is cut into batches?
#ifndef LOADLINE_TOOLS_PIPELINE_BATCH_AXIS_H_
#define LOADLINE_TOOLS_PIPELINE_BATCH_AXIS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "models/graph.h"
#include "models/onnx/declared_inputs.h"

namespace loadline::tools {

// InvalidArgument, with the input and a remedy, if the file's names of open
// axes say that the batch is another axis of an input than the first, or if
// they leave open which of two axes of the same length it is. A model whose
// axes are all fixed says nothing, and is accepted. `graph`: the imported
// model, for the lengths.
absl::Status CheckBatchOfInputs(const models::DeclaredModel& declared,
                                const models::Graph& graph);

// The same of output number `prediction`, whose examples a target is compared
// with. `class_axis`: the axis that the target lacks, if it is named.
absl::Status CheckBatchOfPrediction(const models::DeclaredModel& declared,
                                    size_t prediction,
                                    std::optional<int64_t> class_axis);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_BATCH_AXIS_H_
