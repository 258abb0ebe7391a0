// What `loadline run` says at the end: on stdout, as text or as JSON.
#ifndef LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
#define LOADLINE_TOOLS_REPORT_RUN_REPORT_H_

#include "executor/train/train.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// The plan's table, and predicted beside measured. `first_plan` without steps:
// there was one plan only.
void PrintRunTable(const PlannedStep& step, const Replanned& first_plan,
                   const executor::TrainResult& result);

// The same as loadline.run/1.
void PrintRunJson(const PlannedStep& step, const Replanned& first_plan,
                  const executor::TrainResult& result);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
