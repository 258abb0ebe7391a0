// Which node may have run, and which value matters, at which cut. A value is
// tracked in an epoch if it is surely wanted then or later, if the next epoch
// tracks it, or if what may run again for the sake of such a value reads it.
// Tested through bound_test.cc.
#include <algorithm>

#include "planner/bound/bound_builder.h"

namespace loadline::planner {

void ProgramBuilder::FindEpochs() {
  from_.assign(model_.node_count, 0);
  until_.assign(model_.node_count, epochs_ + 1);
  for (int i = 1; i <= epochs_; ++i) {
    const int cut = cuts_[i - 1];
    const std::vector<char> before = precedence_.Ancestors(cut);
    const std::vector<char> after = precedence_.Descendants(cut);
    for (int n = 0; n < model_.node_count; ++n) {
      if (after[n]) from_[n] = i;
      if (before[n]) until_[n] = std::min(until_[n], i);
    }
    ancestors_.push_back(before);
  }
  in_span_.assign(model_.node_count, 1);
  if (until_node_ >= 0) {
    in_span_ = precedence_.Ancestors(until_node_);
    in_span_[until_node_] = 1;
  }
  is_cut_.assign(model_.node_count, 0);
  for (int i = 1; i <= epochs_; ++i) {
    from_[cuts_[i - 1]] = i;
    until_[cuts_[i - 1]] = i + 1;
    is_cut_[cuts_[i - 1]] = 1;
  }
}

void ProgramBuilder::AddFreeNodes() {
  ran_.assign(model_.node_count, -1);
  for (int n = 0; n < model_.node_count && free_nodes_; ++n) {
    if (until_[n] == from_[n] + 1 || !in_span_[n]) continue;
    ran_[n] = Binary(0);
    for (int p : precedence_.before()[n]) {
      if (ran_[p] >= 0) Row(0, {{ran_[p], 1}, {ran_[n], -1}});
    }
  }
  birth_.assign(model_.value_count, epochs_ + 1);
  for (int v = 0; v < model_.value_count; ++v) {
    if (model_.chain_of[v] >= 0) continue;
    const int producer = model_.producer[v];
    const bool early = producer < 0 || ran_[producer] >= 0;
    birth_[v] = early ? 1 : FirstAfter(producer);
  }
}

int ProgramBuilder::FirstAfter(int node) const {
  for (int i = 1; i <= epochs_; ++i) {
    if (ancestors_[i - 1][node]) return i;
  }
  return epochs_ + 1;
}

bool ProgramBuilder::Wanted(int v, int i) const {
  if (model_.is_output[v] && until_node_ < 0) return true;
  for (const NodeId id : model_.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (!in_span_[n]) continue;
    if (ran_[n] >= 0) return true;
    if (is_cut_[n] ? from_[n] > i : from_[n] >= birth_[v] && until_[n] > i) {
      return true;
    }
  }
  return false;
}

void ProgramBuilder::FindRelevant() {
  tracked_.resize(epochs_ + 1);
  for (int i = epochs_; i >= 1; --i) {
    std::vector<char> relevant(model_.value_count, 0);
    for (int v = 0; v < model_.value_count; ++v) {
      relevant[v] =
          birth_[v] <= i &&
          (Wanted(v, i) || (i < epochs_ && tracked_[i + 1].count(v) > 0));
    }
    for (int n = model_.node_count - 1; n >= 0; --n) {
      if (!MayHaveRun(n, i) || !model_.may_rerun[n]) continue;
      const bool again =
          std::any_of(model_.makes[n].begin(), model_.makes[n].end(),
                      [&](int v) { return relevant[v] != 0; });
      if (!again) continue;
      for (int u : model_.reads[n]) {
        if (model_.chain_of[u] < 0) relevant[u] = 1;
      }
    }
    for (int v = 0; v < model_.value_count; ++v) {
      if (relevant[v]) tracked_[i].emplace(v, Tracked());
    }
  }
}

}  // namespace loadline::planner
