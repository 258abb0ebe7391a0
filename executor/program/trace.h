// Writes the measured timeline of a step as a Chrome trace (opens in Perfetto).
#ifndef LOADLINE_EXECUTOR_PROGRAM_TRACE_H_
#define LOADLINE_EXECUTOR_PROGRAM_TRACE_H_

#include <string>

#include "absl/types/span.h"
#include "executor/device/device.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

// Name of a step in traces and profilers: its node, or the value that it
// copies. Lives as long as the problem.
const std::string& TraceLabel(const planner::Problem& problem,
                              const planner::Plan& plan,
                              const planner::Step& step);

// `measured[i]`: when plan.steps[i] ran, which is Device::trace() of a program
// loaded with LoadOptions::trace. `predicted`: the same by the plan's replay.
// After its steps `measured` has the uploads of the inputs `uploads`
// (Program::UploadNames). Either may be empty. Each is a process with one row
// per lane, the measured one on top. An event carries its step, for a copy its
// bytes, for an encode or decode its codec. Times are in microseconds, as the
// format requires.
std::string ChromeTrace(const planner::Problem& problem,
                        const planner::Plan& plan,
                        absl::Span<const TraceSpan> measured,
                        absl::Span<const TraceSpan> predicted,
                        absl::Span<const std::string> uploads = {});

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_TRACE_H_
