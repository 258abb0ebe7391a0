// Tested by tests/tools/pipeline/plan_phases_test.cc and
// tests/tools/report/phases_report_test.cc.
#include "tools/pipeline/phase_record.h"

#include <cmath>
#include <set>
#include <string>

#include "planner/problem/used_codecs.h"

namespace loadline::tools {

PhaseRecord RecordOf(const passes::PhaseModel& model,
                     const passes::RecipePhase& phase,
                     const PlannedStep& step) {
  PhaseRecord record = {.first_step = phase.first_step,
                        .end_step = phase.end_step};
  record.figures = passes::SizeOfModel(model.model);
  for (const passes::PruneGroup& group : model.groups) {
    if (!group.frozen.empty()) continue;
    record.channels += group.width;
    record.widths.push_back({group.name, group.width, group.heads});
  }
  record.keep_everything_bytes = step.keep_everything.predicted.peak_bytes;
  record.budget_bytes = step.plan.budget_bytes;
  record.arena_bytes = step.plan.arena_bytes;
  record.predicted = step.plan.predicted;
  const planner::CodecFigures stored =
      planner::FiguresOf(step.problem, step.plan);
  record.compressed_values = stored.values;
  record.compression_saved_bytes = stored.saved_bytes;
  // The problem's errors are squares of shares of what is allowed.
  if (stored.lossy) {
    record.gradient_error = step.gradient_errors.most * std::sqrt(stored.error);
  }
  return record;
}

void CountAsIn(const PhaseRecord& first, PhaseRecord* record) {
  std::set<std::string> of_heads;
  for (const GroupWidth& group : first.widths) {
    if (group.heads) of_heads.insert(group.name);
  }
  for (GroupWidth& group : record->widths) {
    if (group.heads || of_heads.count(group.name) == 0) continue;
    record->channels -= group.width - 1;
    group.width = 1;
    group.heads = true;
  }
}

int64_t KeepsEverythingFrom(const std::vector<PhaseRecord>& phases) {
  int64_t from = passes::kOpenEnd;
  for (auto phase = phases.rbegin(); phase != phases.rend(); ++phase) {
    if (!phase->keeps_everything()) break;
    from = phase->first_step;
  }
  return from;
}

}  // namespace loadline::tools
