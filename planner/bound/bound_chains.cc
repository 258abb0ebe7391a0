// Persistent values in the bound: each lives on the device or on the host
// between steps (home), may leave the device in between, and must be there
// when some version of it is read. What leaves, and what lives on the host and
// changes, is copied out; what is read after it was away is copied in. Tested
// through bound_test.cc.
#include <algorithm>

#include "planner/bound/bound_builder.h"

namespace loadline::planner {

std::vector<int> ProgramBuilder::Touchers(int c) const {
  std::vector<int> nodes;
  for (int v : model_.chains[c].versions) {
    for (const NodeId id : model_.index.consumers[v]) {
      nodes.push_back(static_cast<int>(id));
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

int ProgramBuilder::LastUpdater(int c) const {
  return model_.producer[model_.chains[c].versions.back()];
}

bool ProgramBuilder::GoneAt(int version, int i) const {
  const int updater = model_.Updater(version);
  return updater >= 0 && OldVersionDies(model_, version) &&
         (updater == cuts_[i - 1] || ancestors_[i - 1][updater]);
}

int64_t ProgramBuilder::ChainLeastBytes(int c) const {
  int64_t bytes = INT64_MAX;
  for (int v : model_.chains[c].versions) {
    bytes = std::min(bytes, LeastBytes(v));
  }
  return bytes;
}

void ProgramBuilder::AddChain(int c) {
  chains_.emplace_back();
  ChainColumns& chain = chains_.back();
  const std::vector<int> touchers = Touchers(c);
  if (!MayLeave(model_, c)) {
    chain.free = MayLiveOnHost(model_, c);
    chain.fixed = !chain.free;
    return;
  }
  chain.home_host = Binary(0);
  if (!MayLiveOnHost(model_, c)) {
    result_.program.columns[chain.home_host].upper = 0;
  }
  chain.keep.assign(epochs_ + 1, -1);
  for (int i = 0; i <= epochs_; ++i) chain.in.push_back(Binary(0));
  for (int i = 1; i <= epochs_; ++i) chain.keep[i] = Binary(0);
  chain.out.assign(epochs_ + 2, -1);
  for (int i = 1; i <= epochs_ + 1; ++i) chain.out[i] = Binary(0);
  AddChainCarries(chain);
  AddChainOuts(c, chain);
  AddChainReads(c, chain);
}

void ProgramBuilder::AddChainCarries(const ChainColumns& chain) {
  // keep[1] <= (1 - home_host) + in[0]
  Row(-1, {{chain.home_host, -1}, {chain.in[0], 1}, {chain.keep[1], -1}});
  for (int i = 1; i < epochs_; ++i) {
    Row(0, {{chain.keep[i], 1}, {chain.in[i], 1}, {chain.keep[i + 1], -1}});
  }
  // At home on the device in the end.
  Row(1,
      {{chain.keep[epochs_], 1}, {chain.in[epochs_], 1}, {chain.home_host, 1}});
}

void ProgramBuilder::AddChainOuts(int c, const ChainColumns& chain) {
  const int updater = LastUpdater(c);
  for (int i = 1; i <= epochs_; ++i) {
    Terms absent = {{chain.out[i], 1}, {chain.keep[i], 1}};
    const bool updated = updater >= 0 && ancestors_[i - 1][updater];
    if (!updated) absent.push_back({chain.home_host, 1});
    Row(1, absent);
    Row(0, {{chain.out[i + 1], 1}, {chain.out[i], -1}});
  }
  if (updater >= 0) {
    Row(0, {{chain.out[epochs_ + 1], 1}, {chain.home_host, -1}});
  }
}

void ProgramBuilder::AddChainReads(int c, const ChainColumns& chain) {
  int first_until = epochs_ + 2;
  for (int n : Touchers(c)) {
    if (is_cut_[n]) {
      result_.program.columns[chain.keep[from_[n]]].lower = 1;
    } else if (from_[n] > 0) {
      Terms terms = {{chain.keep[from_[n]], 1}};
      for (int i = from_[n]; i < until_[n]; ++i) {
        terms.push_back({chain.in[i], 1});
      }
      Row(1, terms);
    } else {
      first_until = std::min(first_until, until_[n]);
    }
  }
  if (first_until <= epochs_ + 1) {
    Terms terms = {{chain.home_host, -1}};
    for (int i = 0; i < first_until; ++i) terms.push_back({chain.in[i], 1});
    Row(0, terms);
  }
  for (const auto& [i, column] : chain_reruns_[c]) {
    Row(0, {{chain.keep[i], 1}, {chain.in[i], 1}, {column, -1}});
  }
}

void ProgramBuilder::AddChainBytes(int i, Terms& terms, double& left) {
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].free) continue;
    const std::vector<int>& versions = model_.chains[c].versions;
    bool touched = false;
    for (int v : versions) {
      touched = touched || Reads(cuts_[i - 1], v);
    }
    const double bytes = static_cast<double>(
        touched ? model_.bytes[versions.front()]
                : Charged(ChainLeastBytes(static_cast<int>(c))));
    if (chains_[c].fixed || touched) {
      left -= bytes;
    } else {
      terms.push_back({chains_[c].keep[i], bytes});
    }
  }
}

}  // namespace loadline::planner
