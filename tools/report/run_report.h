// Final output of `loadline run`: on stdout, as text or as JSON.
#ifndef LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
#define LOADLINE_TOOLS_REPORT_RUN_REPORT_H_

#include "executor/train/train.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// The plan's table, and predicted against measured figures. `first_plan`
// without steps: the run had only one plan.
void PrintRunTable(const PlannedStep& step, const Replanned& first_plan,
                   const executor::TrainResult& result);

// The same as loadline.run/1.
void PrintRunJson(const PlannedStep& step, const Replanned& first_plan,
                  const executor::TrainResult& result);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
