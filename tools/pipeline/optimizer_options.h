// The optimizer of a step, from its flags.
#ifndef LOADLINE_TOOLS_PIPELINE_OPTIMIZER_OPTIONS_H_
#define LOADLINE_TOOLS_PIPELINE_OPTIMIZER_OPTIONS_H_

#include "absl/status/statusor.h"
#include "passes/add_optimizer.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// InvalidArgument for a setting that this optimizer does not read, since it
// would be ignored.
absl::StatusOr<passes::OptimizerOptions> OptimizerFor(
    const OptimizerFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_OPTIMIZER_OPTIONS_H_
