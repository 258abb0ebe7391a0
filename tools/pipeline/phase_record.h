// What is known of each phase of a run under a recipe, planned and measured.
#ifndef LOADLINE_TOOLS_PIPELINE_PHASE_RECORD_H_
#define LOADLINE_TOOLS_PIPELINE_PHASE_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "passes/compress/model_size.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe_phases.h"
#include "planner/problem/plan.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct GroupWidth {
  std::string name;
  int64_t width = 0;
  bool heads = false;  // passes::PruneGroup::heads
};

struct PhaseRecord {
  int64_t number = 0;  // from 1
  int64_t first_step = 0;
  int64_t end_step = 0;  // passes::kOpenEnd: not known
  passes::ModelSize figures;
  int64_t channels = 0;            // of all groups that may be pruned
  std::vector<GroupWidth> widths;  // the same by group
  // Planned.
  int64_t keep_everything_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t arena_bytes = 0;
  planner::Prediction predicted;
  int64_t compressed_values = 0;
  int64_t compression_saved_bytes = 0;
  double gradient_error = 0;  // expected, relative; 0: none
  // Of the states and parameters that host memory held between the phase
  // before and this one.
  int64_t carried_bytes = 0;
  // Measured; 0 where nothing ran.
  int64_t steps_done = 0;
  int64_t measured_arena_bytes = 0;
  int64_t measured_step_ns = 0;

  // Whether the plan recomputes and copies nothing.
  bool keeps_everything() const {
    return predicted.recompute_ns == 0 && predicted.d2h_bytes == 0 &&
           predicted.h2d_bytes == 0;
  }
};

// The record of a phase that is planned, but did not run.
PhaseRecord RecordOf(const passes::PhaseModel& model,
                     const passes::RecipePhase& phase, const PlannedStep& step);

// Counts groups of attention heads in heads, as `first` does. The one head that
// may be left of a group is split into channels by the search for groups.
void CountAsIn(const PhaseRecord& first, PhaseRecord* record);

// The first step from which on no phase recomputes or copies anything: a
// phase's first_step, or kOpenEnd if the last one still does.
int64_t KeepsEverythingFrom(const std::vector<PhaseRecord>& phases);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PHASE_RECORD_H_
