// Tested in tests/planner/bound/bound_tracking_test.cc.
#include "planner/bound/bound_tracking.h"

#include <algorithm>

namespace loadline::planner {

TrackedValues::TrackedValues(const SearchModel& model, const CutEpochs& epochs,
                             const FreeNodes& free)
    : model_(model),
      epochs_(epochs),
      free_(free),
      birth_(model.value_count, epochs.count() + 1),
      in_(epochs.count() + 1) {
  for (int v = 0; v < model.value_count; ++v) {
    if (model.chain_of[v] >= 0) continue;
    const int producer = model.producer[v];
    const bool early = producer < 0 || free.Has(producer);
    birth_[v] = early ? 1 : epochs.FirstCutAfter(producer);
  }
  for (int i = epochs.count(); i >= 1; --i) {
    std::vector<char> relevant(model.value_count, 0);
    for (int v = 0; v < model.value_count; ++v) {
      relevant[v] = birth_[v] <= i &&
                    (Wanted(v, i) || (i < epochs.count() && Has(v, i + 1)));
    }
    AddInputsOfReruns(i, relevant);
    for (int v = 0; v < model.value_count; ++v) {
      if (relevant[v]) in_[i].push_back(v);
    }
  }
}

bool TrackedValues::Has(int value, int epoch) const {
  return std::binary_search(in_[epoch].begin(), in_[epoch].end(), value);
}

// Does a first run or the end surely need the value in epoch i or later?
bool TrackedValues::Wanted(int v, int i) const {
  if (model_.is_output[v] && epochs_.to_end()) return true;
  for (const NodeId id : model_.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (!epochs_.Counts(n)) continue;
    if (free_.Has(n)) return true;
    if (epochs_.IsCut(n)
            ? epochs_.From(n) > i
            : epochs_.From(n) >= birth_[v] && epochs_.Until(n) > i) {
      return true;
    }
  }
  return false;
}

// Backwards in the given order, so that whole chains of reruns are found.
void TrackedValues::AddInputsOfReruns(int i,
                                      std::vector<char>& relevant) const {
  for (int n = model_.node_count - 1; n >= 0; --n) {
    const bool may_have_run = epochs_.RanBefore(n, i) || free_.Has(n);
    if (!may_have_run || !model_.may_rerun[n]) continue;
    const bool again =
        std::any_of(model_.makes[n].begin(), model_.makes[n].end(),
                    [&](int v) { return relevant[v] != 0; });
    if (!again) continue;
    for (int u : model_.reads[n]) {
      if (model_.chain_of[u] < 0) relevant[u] = 1;
    }
  }
}

}  // namespace loadline::planner
