// Tested by tests/end_to_end/report_test.cc and training_test.cc.
#include "tools/report/trace_file.h"

#include "executor/program/trace.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/timeline.h"

namespace loadline::tools {

absl::Status WriteTrace(const std::string& path, const PlannedStep& step,
                        absl::Span<const executor::TraceSpan> measured,
                        absl::Span<const std::string> uploads) {
  LOADLINE_ASSIGN_OR_RETURN(const Timeline timeline,
                            ReplayTimeline(step.problem, step.plan));
  return WriteFile(path,
                   executor::ChromeTrace(step.problem, step.plan, measured,
                                         timeline.spans, uploads));
}

}  // namespace loadline::tools
