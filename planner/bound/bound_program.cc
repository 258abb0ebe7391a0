// Tested in tests/planner/bound/bound_test.cc against exact optima of small
// problems (oracle.h) and against plans found on random ones.
#include "planner/bound/bound_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/bound/bound_budget.h"
#include "planner/bound/bound_chains.h"
#include "planner/bound/bound_context.h"
#include "planner/bound/bound_epochs.h"
#include "planner/bound/bound_fits.h"
#include "planner/bound/bound_free_nodes.h"
#include "planner/bound/bound_lanes.h"
#include "planner/bound/bound_needs.h"
#include "planner/bound/bound_rows.h"
#include "planner/bound/bound_tracking.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

BoundProgram MakeBoundProgram(const SearchModel& model, const LeastCosts& least,
                              const Precedence& precedence,
                              const BoundQuery& query) {
  const double compute_ns = static_cast<double>(least.compute_ns);
  const double unit_ns =
      std::max(1.0, compute_ns / std::max(1, model.node_count));
  const bool copies = std::any_of(model.may_copy.begin(), model.may_copy.end(),
                                  [](char may) { return may != 0; });
  const CutEpochs epochs(model, precedence, query.cuts, query.until);
  BoundRows rows(unit_ns, epochs.count(), copies);
  const FreeNodes free(model, precedence, epochs, query.free_nodes, rows);
  const int64_t budget_bytes = ChargedBytes(
      model, std::min(query.budget_bytes, INT64_MAX - model.alignment_bytes));
  const BoundContext context{
      model, least, epochs, free, static_cast<double>(budget_bytes), rows};
  const TrackedValues tracked(model, epochs, free);
  std::optional<LaneTimes> times;
  if (copies) {
    times.emplace(epochs.count(), compute_ns, query.horizon_ns, rows);
  }
  const ValueColumns values(context, tracked);
  AddCarryRows(context, values);
  AddNeedRows(context, tracked, values);
  const ChainColumns chains(context, values);
  AddBudgetRows(context, values, chains);
  AddRerunFitRows(context, values, chains);
  if (times) AddLaneRows(context, *times, values, chains);
  return {std::move(rows.program()), unit_ns, compute_ns};
}

}  // namespace loadline::planner
