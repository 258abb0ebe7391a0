// At the moment t_i when cut x_i starts for the first time, every ancestor of
// x_i has ended and no descendant has started. A value made by an ancestor and
// read by a descendant is on the device then (k), or on the host and copied
// back later (in), or made again later (r), or on the device encoded and
// decoded later; all that is on the device fits the budget. With several cuts
// this holds in every epoch [t_i, t_i+1), and what is on the device at t_i+1
// was there at t_i or came in the epoch. Nodes that are neither ancestor nor
// descendant are left free, and wherever a plan has more permissions than these
// (copies in flight, second instances, encoded copies on the host) the program
// grants them for nothing: it is a relaxation of every valid plan.
//
// Time: compute in the epochs, reruns included, and the copy lanes: what is on
// the host at t_i was copied out before, what comes back in epoch i or later
// starts after t_i. Latencies count; that both lanes slow each other down
// counts over the whole step.
//
// Tested in tests/planner/bound/bound_test.cc against exact optima of small
// problems (oracle.h) and every plan found on random ones.
#include "planner/bound/bound_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/base/align.h"
#include "planner/bound/bound_builder.h"

namespace loadline::planner {

ProgramBuilder::ProgramBuilder(const SearchModel& model,
                               const LeastCosts& least,
                               const Precedence& precedence,
                               const std::vector<int>& cuts, int until,
                               int64_t budget_bytes, double horizon_ns,
                               bool free_nodes)
    : model_(model),
      least_(least),
      cuts_(cuts),
      epochs_(static_cast<int>(cuts.size())),
      horizon_ns_(horizon_ns),
      free_nodes_(free_nodes && cuts.size() == 1),
      until_node_(until),
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

LeastCosts FindLeastCosts(const SearchModel& model) {
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

BoundProgram MakeBoundProgram(const SearchModel& model, const LeastCosts& least,
                              const Precedence& precedence,
                              const std::vector<int>& cuts, int until,
                              int64_t budget_bytes, double horizon_ns,
                              bool free_nodes) {
  return ProgramBuilder(model, least, precedence, cuts, until, budget_bytes,
                        horizon_ns, free_nodes)
      .Build();
}

}  // namespace loadline::planner
