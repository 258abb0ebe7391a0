// The loss of a step, from its flags, the model and the targets in the data.
#ifndef LOADLINE_TOOLS_PIPELINE_LOSS_OPTIONS_H_
#define LOADLINE_TOOLS_PIPELINE_LOSS_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/add_loss.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// The loss as the flags and the data's target have it. Without data,
// cross-entropy's classes are the last axis of the model's output. `path`: the
// model's file, whose names of outputs --output-name has.
absl::StatusOr<passes::LossOptions> LossFor(const models::Graph& model,
                                            const LossFlags& flags,
                                            const std::string& path);
// Of a model whose output is softmax or sigmoid already; empty if there is
// nothing to say.
std::string LossWarning(const models::Graph& model, const LossFlags& flags);
// Says it to the user.
void WarnOfLoss(const models::Graph& model, const LossFlags& flags);
// InvalidArgument: the batch is not the first axis of every input and of the
// prediction (tools/pipeline/batch_axis.h). LossFor checks it where `flags`
// have data. `flags` name the output as the graph does.
absl::Status CheckBatchAxes(const models::Graph& model, const LossFlags& flags,
                            const std::string& path);
// The flags with the graph's name of that output. InvalidArgument: there is no
// such output.
absl::StatusOr<LossFlags> WithGraphsOutputName(const models::Graph& model,
                                               LossFlags flags,
                                               const std::string& path);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOSS_OPTIONS_H_
