// Tested in tests/planner/bound/bound_chains_test.cc.
#include "planner/bound/bound_chains.h"

#include <algorithm>

namespace loadline::planner {

ChainColumns::ChainColumns(const BoundContext& context,
                           const ValueColumns& values)
    : context_(context), reruns_(context.model.chains.size()) {
  FindReruns(values);
  for (size_t c = 0; c < context.model.chains.size(); ++c) {
    AddChain(static_cast<int>(c));
  }
}

void ChainColumns::FindReruns(const ValueColumns& values) {
  const SearchModel& model = context_.model;
  for (const auto& [key, column] : values.reruns()) {
    const auto [i, node] = key;
    for (int u : model.reads[node]) {
      if (model.chain_of[u] < 0) continue;
      reruns_[model.chain_of[u]].push_back({i, column});
      if (GoneAt(u, i)) context_.rows.column(column).upper = 0;
    }
  }
}

std::vector<int> ChainColumns::Readers(int chain) const {
  std::vector<int> nodes;
  for (int v : context_.model.chains[chain].versions) {
    for (const NodeId id : context_.model.index.consumers[v]) {
      nodes.push_back(static_cast<int>(id));
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

int ChainColumns::LastUpdater(int chain) const {
  return context_.model.producer[context_.model.chains[chain].versions.back()];
}

// Is this version surely overwritten once cut i has run?
bool ChainColumns::GoneAt(int version, int i) const {
  const int overwriter = Overwriter(context_.model, version);
  return overwriter >= 0 && (overwriter == context_.epochs.cut(i) ||
                             context_.epochs.RanBefore(overwriter, i));
}

void ChainColumns::AddChain(int c) {
  const SearchModel& model = context_.model;
  BoundRows& rows = context_.rows;
  const int epochs = context_.epochs.count();
  chains_.emplace_back();
  ChainColumn& chain = chains_.back();
  if (!MayLeave(model, c)) {
    chain.anywhere = MayLiveOnHost(model, c);
    chain.fixed = !chain.anywhere;
    return;
  }
  chain.home_host = rows.Binary();
  if (!MayLiveOnHost(model, c)) rows.column(chain.home_host).upper = 0;
  chain.keep.assign(epochs + 1, -1);
  for (int i = 0; i <= epochs; ++i) chain.in.push_back(rows.Binary());
  for (int i = 1; i <= epochs; ++i) chain.keep[i] = rows.Binary();
  chain.out.assign(epochs + 2, -1);
  for (int i = 1; i <= epochs + 1; ++i) chain.out[i] = rows.Binary();
  AddCarries(chain);
  AddOuts(c, chain);
  AddReads(c, chain);
}

void ChainColumns::AddCarries(const ChainColumn& chain) {
  BoundRows& rows = context_.rows;
  const int last = context_.epochs.count();
  rows.AtLeast(-1,
               {{chain.home_host, -1}, {chain.in[0], 1}, {chain.keep[1], -1}});
  for (int i = 1; i < last; ++i) {
    rows.AtLeast(
        0, {{chain.keep[i], 1}, {chain.in[i], 1}, {chain.keep[i + 1], -1}});
  }
  rows.AtLeast(
      1, {{chain.keep[last], 1}, {chain.in[last], 1}, {chain.home_host, 1}});
}

void ChainColumns::AddOuts(int c, const ChainColumn& chain) {
  BoundRows& rows = context_.rows;
  const int epochs = context_.epochs.count();
  const int updater = LastUpdater(c);
  for (int i = 1; i <= epochs; ++i) {
    Terms somewhere = {{chain.out[i], 1}, {chain.keep[i], 1}};
    const bool updated = updater >= 0 && context_.epochs.RanBefore(updater, i);
    if (!updated) somewhere.push_back({chain.home_host, 1});
    rows.AtLeast(1, somewhere);
    rows.AtLeast(0, {{chain.out[i + 1], 1}, {chain.out[i], -1}});
  }
  if (updater >= 0) {
    rows.AtLeast(0, {{chain.out[epochs + 1], 1}, {chain.home_host, -1}});
  }
}

void ChainColumns::AddReads(int c, const ChainColumn& chain) {
  const CutEpochs& epochs = context_.epochs;
  BoundRows& rows = context_.rows;
  int first_until = epochs.count() + 2;  // of readers before the first cut
  for (int n : Readers(c)) {
    if (epochs.IsCut(n)) {
      rows.column(chain.keep[epochs.From(n)]).lower = 1;
    } else if (epochs.From(n) > 0) {
      Terms terms = {{chain.keep[epochs.From(n)], 1}};
      for (int i = epochs.From(n); i < epochs.Until(n); ++i) {
        terms.push_back({chain.in[i], 1});
      }
      rows.AtLeast(1, terms);
    } else {
      first_until = std::min(first_until, epochs.Until(n));
    }
  }
  if (first_until <= epochs.count() + 1) {
    Terms terms = {{chain.home_host, -1}};
    for (int i = 0; i < first_until; ++i) terms.push_back({chain.in[i], 1});
    rows.AtLeast(0, terms);
  }
  for (const auto& [i, column] : reruns_[c]) {
    rows.AtLeast(0, {{chain.keep[i], 1}, {chain.in[i], 1}, {column, -1}});
  }
}

}  // namespace loadline::planner
