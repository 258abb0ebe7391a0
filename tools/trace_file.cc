// Tested by tests/end_to_end/report_test.cc and training_test.cc.
#include "tools/trace_file.h"

#include "executor/trace.h"
#include "planner/status_macros.h"
#include "tools/files.h"
#include "tools/report/timeline.h"

namespace loadline::tools {

absl::Status WriteTrace(const std::string& path, const PlannedStep& step,
                        absl::Span<const executor::TraceSpan> measured) {
  LOADLINE_ASSIGN_OR_RETURN(const Timeline timeline,
                            ReplayTimeline(step.problem, step.plan));
  return WriteFile(path, executor::ChromeTrace(step.problem, step.plan,
                                               measured, timeline.spans));
}

}  // namespace loadline::tools
