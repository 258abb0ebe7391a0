// Final output of `loadline run`: on stdout, as text or as JSON.
#ifndef LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
#define LOADLINE_TOOLS_REPORT_RUN_REPORT_H_

#include <cstdint>

#include "executor/train/train.h"
#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// Bytes of this process in RAM, where the device is the CPU.
struct ResidentMemory {
  // Before the arena: libraries, model, data. 0: not known.
  int64_t base_bytes = 0;
  int64_t planning_bytes = 0;  // at most, before the arena
  int64_t store_bytes = 0;     // of a host store in RAM
  int64_t peak_bytes = 0;      // at most, since the process started
};

// The plan's table, and predicted against measured figures. `first_plan`
// without steps: the run had only one plan.
void PrintRunTable(const PlannedStep& step, const Replanned& first_plan,
                   const executor::TrainResult& result,
                   const ResidentMemory& resident);

// The same as loadline.run/1.
nlohmann::ordered_json RunJson(const PlannedStep& step,
                               const Replanned& first_plan,
                               const executor::TrainResult& result,
                               const ResidentMemory& resident);
void PrintRunJson(const PlannedStep& step, const Replanned& first_plan,
                  const executor::TrainResult& result,
                  const ResidentMemory& resident);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_RUN_REPORT_H_
