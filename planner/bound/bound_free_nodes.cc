// Tested in tests/planner/bound/bound_free_nodes_test.cc.
#include "planner/bound/bound_free_nodes.h"

namespace loadline::planner {

FreeNodes::FreeNodes(const SearchModel& model, const Precedence& precedence,
                     const CutEpochs& epochs, bool enabled, BoundRows& rows)
    : enabled_(enabled && epochs.count() == 1), ran_(model.node_count, -1) {
  for (int n = 0; n < model.node_count && enabled_; ++n) {
    if (epochs.Settled(n) || !epochs.Counts(n)) continue;
    ran_[n] = rows.Binary();
    for (int p : precedence.before()[n]) {
      if (Has(p)) rows.AtLeast(0, {{ran_[p], 1}, {ran_[n], -1}});
    }
  }
}

}  // namespace loadline::planner
