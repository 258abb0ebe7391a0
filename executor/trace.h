// What a step really did, as a Chrome trace (opens in Perfetto).
#ifndef LOADLINE_EXECUTOR_TRACE_H_
#define LOADLINE_EXECUTOR_TRACE_H_

#include <string>

#include "absl/types/span.h"
#include "executor/device.h"
#include "planner/plan.h"
#include "planner/problem.h"

namespace loadline::executor {

// `spans[i]` is when plan.steps[i] ran: Device::trace() of a program loaded
// with LoadOptions::trace. One row per lane; each event carries its step, and
// for a copy its bytes. Times in microseconds, as the format wants them.
std::string ChromeTrace(const planner::Problem& problem,
                        const planner::Plan& plan,
                        absl::Span<const TraceSpan> spans);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRACE_H_
