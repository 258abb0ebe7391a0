// Writes the Chrome trace of a planned step: measured and predicted timelines.
#ifndef LOADLINE_TOOLS_REPORT_TRACE_FILE_H_
#define LOADLINE_TOOLS_REPORT_TRACE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "executor/device/device.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// `measured`: by step of the plan, then by upload of the inputs `uploads`;
// empty if it was not run.
absl::Status WriteTrace(const std::string& path, const PlannedStep& step,
                        absl::Span<const executor::TraceSpan> measured,
                        absl::Span<const std::string> uploads = {});

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_TRACE_FILE_H_
