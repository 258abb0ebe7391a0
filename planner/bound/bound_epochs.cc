// Tested in tests/planner/bound/bound_epochs_test.cc.
#include "planner/bound/bound_epochs.h"

#include <algorithm>

namespace loadline::planner {

CutEpochs::CutEpochs(const SearchModel& model, const Precedence& precedence,
                     const std::vector<int>& cuts, int until)
    : cuts_(cuts),
      to_end_(until < 0),
      from_(model.node_count, 0),
      until_(model.node_count, count() + 1),
      is_cut_(model.node_count, 0),
      in_span_(model.node_count, 1) {
  for (int i = 1; i <= count(); ++i) {
    const std::vector<char> before = precedence.Ancestors(cut(i));
    const std::vector<char> after = precedence.Descendants(cut(i));
    for (int n = 0; n < model.node_count; ++n) {
      if (after[n]) from_[n] = i;
      if (before[n]) until_[n] = std::min(until_[n], i);
    }
    ancestors_.push_back(before);
  }
  if (!to_end_) {
    in_span_ = precedence.Ancestors(until);
    in_span_[until] = 1;
  }
  for (int i = 1; i <= count(); ++i) {
    from_[cut(i)] = i;
    until_[cut(i)] = i + 1;
    is_cut_[cut(i)] = 1;
  }
}

int CutEpochs::FirstCutAfter(int node) const {
  for (int i = 1; i <= count(); ++i) {
    if (RanBefore(node, i)) return i;
  }
  return count() + 1;
}

}  // namespace loadline::planner
