// What storing a value in 8 bits costs of the gradient's accuracy.
#ifndef LOADLINE_TOOLS_PIPELINE_GRADIENT_ERRORS_H_
#define LOADLINE_TOOLS_PIPELINE_GRADIENT_ERRORS_H_

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Nothing without --max-gradient-error. Otherwise one error for each value that
// may be stored lossy: profiled on the CPU with the first batch of --data, or
// with made-up inputs where there is none. Where a profile is impossible (no
// weights, a kernel that the CPU lacks) or would take long, the analytic
// estimate (executor/measure/gradient_error.h) for all; the log says which.
absl::StatusOr<GradientErrors> GradientErrorsFor(const StepFlags& flags,
                                                 const models::Graph& graph);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_GRADIENT_ERRORS_H_
