// At the moment t_i when cut x_i starts for the first time, every ancestor of
// x_i has ended and no descendant has started. A value made by an ancestor and
// read by a descendant is on the device then (k), or on the host and copied
// back later (in), or made again later (r), or on the device encoded and
// decoded later; all that is on the device fits the budget. With several cuts
// this holds in every epoch [t_i, t_i+1), and what is on the device at t_i+1
// was there at t_i or came in the epoch. Nodes that are neither ancestor nor
// descendant are left free, and wherever a plan has more choices than these
// (copies in flight, second instances, encoded copies on the host) the program
// grants them for nothing: it is a relaxation of every valid plan.
//
// Time: compute in the epochs, reruns included, and the copy lanes: what is on
// the host at t_i was copied out before, what comes back in epoch i or later
// starts after t_i. Latencies count; that both lanes slow each other down
// counts over the whole step.
//
// Tested in tests/planner/bound_test.cc against exact optima of small problems
// (oracle.h) and every plan found on random ones.
#include "planner/bound_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/bound_builder.h"

namespace loadline::planner {

ProgramBuilder::ProgramBuilder(const Model& model, const LeastCosts& least,
                               const Precedence& precedence,
                               const std::vector<int>& cuts,
                               int64_t budget_bytes, double horizon_ns,
                               bool free_nodes)
    : model_(model),
      least_(least),
      cuts_(cuts),
      epochs_(static_cast<int>(cuts.size())),
      horizon_ns_(horizon_ns),
      free_nodes_(free_nodes && cuts.size() == 1),
      precedence_(precedence) {
  budget_bytes_ = static_cast<double>(
      AlignUp(std::min(budget_bytes, INT64_MAX - model.alignment_bytes),
              model.alignment_bytes));
  result_.unit_ns = std::max(1.0, static_cast<double>(least.compute_ns) /
                                      std::max(1, model.node_count));
  result_.offset_ns = static_cast<double>(least.compute_ns);
  for (const char may : model.may_copy) copies_ = copies_ || may;
}

BoundProgram ProgramBuilder::Build() {
  FindEpochs();
  AddFreeNodes();
  FindRelevant();
  if (copies_) AddTimes();
  AddValues();
  AddReruns();
  AddCarries();
  AddNeeds();
  for (size_t c = 0; c < model_.chains.size(); ++c) {
    AddChain(static_cast<int>(c));
  }
  for (int i = 1; i <= epochs_; ++i) AddBudget(i);
  for (int i = 1; i < epochs_; ++i) AddRerunFits(i);
  if (copies_) AddLanes();
  return std::move(result_);
}

void ProgramBuilder::Append(Terms& to, const Terms& from, double factor) {
  for (const Term& term : from) {
    to.push_back({term.column, factor * term.coefficient});
  }
}

int ProgramBuilder::Binary(double cost_ns) {
  return result_.program.AddColumn(copies_ ? 0 : cost_ns / result_.unit_ns, 0,
                                   1, true);
}

int ProgramBuilder::Work(int i, double ns) {
  const int column = Binary(ns);
  if (copies_ && ns > 0) work_[i].push_back({column, ns / result_.unit_ns});
  return column;
}

void ProgramBuilder::Row(double lower, const Terms& terms) {
  result_.program.AddRow(lower, kNoLimit, terms);
}

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
    if (until_[n] == from_[n] + 1) continue;
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
  if (model_.is_output[v]) return true;
  for (const NodeId id : model_.index.consumers[v]) {
    const int n = static_cast<int>(id);
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

int64_t ProgramBuilder::Charged(int64_t bytes) const {
  return AlignUp(bytes, model_.alignment_bytes);
}

int64_t ProgramBuilder::LeastBytes(int v) const {
  int64_t bytes = model_.problem->values[v].bytes;
  for (const Codec& codec : model_.stash[v]) {
    bytes = std::min(bytes, codec.bytes);
  }
  return bytes;
}

bool ProgramBuilder::Reads(int node, int v) const {
  return std::binary_search(model_.reads[node].begin(),
                            model_.reads[node].end(), v);
}

bool ProgramBuilder::MayLoseBytes(int node, int v) const {
  for (const auto& [in, out] : model_.problem->nodes[node].inplace) {
    if (static_cast<int>(in) == v) return true;
  }
  return false;
}

void ProgramBuilder::AddValues() {
  for (int i = 1; i <= epochs_; ++i) {
    for (auto& [v, tracked] : tracked_[i]) {
      tracked.keep = Binary(0);
      const int cut = cuts_[i - 1];
      if (Reads(cut, v) && !MayLoseBytes(cut, v)) {
        result_.program.columns[tracked.keep].lower = 1;
      }
      if (model_.may_copy[v]) {
        tracked.host = Binary(0);
        tracked.in = Binary(0);
        Row(0, {{tracked.host, 1}, {tracked.in, -1}});
      }
      AddCodecs(i, v, tracked);
    }
  }
}

void ProgramBuilder::AddCodecs(int i, int v, Tracked& tracked) {
  const std::vector<Codec>& codecs = model_.stash[v];
  for (size_t c = 0; c < codecs.size(); ++c) {
    tracked.encoded.push_back(Binary(0));
    tracked.decode.push_back(Work(i, static_cast<double>(codecs[c].decode_ns)));
    Row(0, {{tracked.encoded[c], 1}, {tracked.decode[c], -1}});
    // Encoded at least once; when does not matter.
    const auto [once, added] = encodes_.try_emplace({v, c}, -1);
    if (added) {
      once->second = Binary(static_cast<double>(codecs[c].encode_ns));
      if (copies_) {
        encode_work_.push_back(
            {once->second,
             static_cast<double>(codecs[c].encode_ns) / result_.unit_ns});
      }
    }
    Row(0, {{once->second, 1}, {tracked.encoded[c], -1}});
  }
}

ProgramBuilder::Terms ProgramBuilder::Arrivals(int v, int i) const {
  const auto found = tracked_[i].find(v);
  if (found == tracked_[i].end()) return {};
  Terms terms;
  if (found->second.in >= 0) terms.push_back({found->second.in, 1});
  for (int column : found->second.decode) terms.push_back({column, 1});
  const int producer = model_.producer[v];
  if (producer >= 0) {
    const auto again = reruns_.find({i, producer});
    if (again != reruns_.end()) terms.push_back({again->second, 1});
  }
  return terms;
}

ProgramBuilder::Terms ProgramBuilder::Available(int v, int i) const {
  Terms terms = Arrivals(v, i);
  terms.push_back({tracked_[i].at(v).keep, 1});
  return terms;
}

void ProgramBuilder::AddReruns() {
  chain_reruns_.resize(model_.chains.size());
  for (int i = 1; i <= epochs_; ++i) {
    for (const auto& [v, tracked] : tracked_[i]) {
      const int producer = model_.producer[v];
      if (producer < 0 || !model_.may_rerun[producer] ||
          reruns_.count({i, producer}) > 0) {
        continue;
      }
      reruns_[{i, producer}] =
          Work(i, static_cast<double>(least_.node_ns[producer]));
    }
  }
  for (const auto& [key, column] : reruns_) {
    const auto [i, node] = key;
    if (ran_[node] >= 0) Row(0, {{ran_[node], 1}, {column, -1}});
    for (int u : model_.reads[node]) {
      if (model_.chain_of[u] >= 0) {
        chain_reruns_[model_.chain_of[u]].push_back({i, column});
        if (GoneAt(u, i)) result_.program.columns[column].upper = 0;
        continue;
      }
      Terms terms = Available(u, i);
      terms.push_back({column, -1});
      Row(0, terms);
    }
  }
}

void ProgramBuilder::AddCarries() {
  for (int i = 1; i < epochs_; ++i) {
    for (const auto& [v, later] : tracked_[i + 1]) {
      const auto now = tracked_[i].find(v);
      if (now == tracked_[i].end()) continue;
      Terms terms = Available(v, i);
      terms.push_back({later.keep, -1});
      Row(0, terms);
      if (later.host >= 0) {
        Row(0, {{later.host, 1}, {now->second.host, -1}});
      }
      if (later.in >= 0) continue;  // encoded on the host, perhaps
      for (size_t c = 0; c < later.encoded.size(); ++c) {
        Terms encoded = Available(v, i);
        encoded.push_back({now->second.encoded[c], 1});
        encoded.push_back({later.encoded[c], -1});
        Row(0, encoded);
      }
    }
  }
}

void ProgramBuilder::AddNeed(int v, int from, int until) {
  Terms terms = Available(v, from);
  for (int i = from + 1; i < until; ++i) Append(terms, Arrivals(v, i), 1);
  Row(1, terms);
}

void ProgramBuilder::AddFreeNeeds(int v) {
  const int producer = model_.producer[v];
  const int made = producer < 0 ? -1 : ran_[producer];
  // made - (reader has run) <= available
  const auto add = [&](int reader) {
    Terms terms = Available(v, 1);
    if (made >= 0) terms.push_back({made, -1});
    if (reader >= 0) terms.push_back({reader, 1});
    Row(made >= 0 ? 0 : 1, terms);
  };
  if (made >= 0 && model_.is_output[v]) add(-1);
  for (const NodeId id : model_.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (ran_[n] >= 0) {
      add(ran_[n]);
    } else if (made >= 0 && from_[n] >= 1 && !is_cut_[n]) {
      add(-1);
    }
  }
}

void ProgramBuilder::AddNeeds() {
  for (int v = 0; v < model_.value_count; ++v) {
    if (birth_[v] > epochs_) continue;
    if (free_nodes_) AddFreeNeeds(v);
    const int producer = model_.producer[v];
    if (producer >= 0 && ran_[producer] >= 0) continue;
    std::vector<std::pair<int, int>> needs;
    if (model_.is_output[v]) needs.push_back({epochs_, epochs_ + 1});
    for (const NodeId id : model_.index.consumers[v]) {
      const int n = static_cast<int>(id);
      if (is_cut_[n]) {
        // There when the cut starts, even if nothing reads it any more.
        if (from_[n] > birth_[v]) needs.push_back({from_[n] - 1, from_[n]});
      } else if (from_[n] >= birth_[v]) {
        needs.push_back({from_[n], until_[n]});
      }
    }
    std::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    for (const auto& [from, until] : needs) AddNeed(v, from, until);
  }
}

void ProgramBuilder::AddBudget(int i) {
  const int cut = cuts_[i - 1];
  Terms terms;
  double left =
      budget_bytes_ - static_cast<double>(least_.workspace_bytes[cut]);
  const auto bytes = [](int64_t b) { return static_cast<double>(b); };
  for (int v : model_.makes[cut]) {
    if (model_.chain_of[v] < 0) left -= bytes(model_.bytes[v]);
  }
  for (int v : model_.reads[cut]) {
    if (model_.chain_of[v] < 0 && tracked_[i].count(v) == 0) {
      left -= bytes(model_.bytes[v]);
    }
  }
  for (const auto& [v, tracked] : tracked_[i]) {
    // What the cut reads and may overwrite counts whole; see AddInPlace.
    if (Reads(cut, v)) {
      left -= bytes(model_.bytes[v]);
    } else {
      terms.push_back({tracked.keep, bytes(model_.bytes[v])});
    }
    for (size_t c = 0; c < tracked.encoded.size(); ++c) {
      terms.push_back(
          {tracked.encoded[c], bytes(Charged(model_.stash[v][c].bytes))});
    }
  }
  AddChainBytes(i, terms, left);
  AddInPlace(i, terms, left);
  double unit = 1;
  for (const Term& term : terms) {
    unit = std::max(unit, std::fabs(term.coefficient));
  }
  for (Term& term : terms) term.coefficient /= unit;
  result_.program.AddRow(-kNoLimit, left / unit, terms);
}

void ProgramBuilder::AddInPlace(int i, Terms& terms, double& left) {
  const int cut = cuts_[i - 1];
  std::map<int, Terms> by_input, by_output;
  for (const auto& [from, to] : model_.problem->nodes[cut].inplace) {
    const int in = static_cast<int>(from);
    const int out = static_cast<int>(to);
    if (model_.chain_of[in] >= 0 &&
        model_.chain_of[in] == model_.chain_of[out]) {
      continue;
    }
    const int taken = Binary(0);
    terms.push_back({taken, -static_cast<double>(model_.bytes[out])});
    by_input[in].push_back({taken, 1});
    by_output[out].push_back({taken, 1});
  }
  left += 1e-6;  // less than a byte, more than a coefficient's rounding
  for (auto& [out, columns] : by_output) {
    result_.program.AddRow(-kNoLimit, 1, columns);
  }
  for (auto& [in, columns] : by_input) {
    const auto found = tracked_[i].find(in);
    if (found != tracked_[i].end()) {
      columns.push_back({found->second.keep, 1});
      result_.program.AddRow(1, 1, columns);
    } else {
      result_.program.AddRow(-kNoLimit, 1, columns);
    }
  }
}

LeastCosts FindLeastCosts(const Model& model) {
  LeastCosts least;
  for (int n = 0; n < model.node_count; ++n) {
    int64_t ns = model.node_ns[n];
    int64_t bytes = model.workspace_bytes[n];
    for (const Variant& variant : model.variants[n]) {
      ns = std::min(ns, variant.time_ns);
      bytes = std::min(bytes,
                       AlignUp(variant.workspace_bytes, model.alignment_bytes));
    }
    least.node_ns.push_back(ns);
    least.workspace_bytes.push_back(bytes);
    least.compute_ns += ns;
  }
  return least;
}

BoundProgram MakeBoundProgram(const Model& model, const LeastCosts& least,
                              const Precedence& precedence,
                              const std::vector<int>& cuts,
                              int64_t budget_bytes, double horizon_ns,
                              bool free_nodes) {
  return ProgramBuilder(model, least, precedence, cuts, budget_bytes,
                        horizon_ns, free_nodes)
      .Build();
}

}  // namespace loadline::planner
