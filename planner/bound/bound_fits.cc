// Reruns in the bound must fit, too: while a node runs again between two cuts,
// its inputs, outputs and workspace lie beside all that stays on the device
// from one cut to the next. A value that is there at the next cut, was made
// before and did not arrive in between has stayed.
//
// A cut is worth little for the ones before it without these rows: reruns would
// all take place where memory is full. Tested through bound_test.cc.
#include <algorithm>

#include "planner/bound/bound_builder.h"

namespace loadline::planner {

bool ProgramBuilder::Stays(int v, int i) const {
  return tracked_[i].count(v) > 0 && tracked_[i + 1].count(v) > 0;
}

ProgramBuilder::Terms ProgramBuilder::StayingBytes(int v, int i) const {
  const double bytes = static_cast<double>(model_.bytes[v]);
  Terms terms = {{tracked_[i + 1].at(v).keep, bytes}};
  Append(terms, Arrivals(v, i), -bytes);
  return terms;
}

int64_t ProgramBuilder::RunBytes(int n) const {
  int64_t bytes = least_.workspace_bytes[n];
  for (int u : model_.reads[n]) {
    const int c = model_.chain_of[u];
    if (c < 0 || !chains_[c].fixed) bytes += model_.bytes[u];
  }
  for (int v : model_.makes[n]) {
    const auto& pairs = model_.problem->nodes[n].inplace;
    const bool may_take_over = std::any_of(
        pairs.begin(), pairs.end(),
        [&](const auto& pair) { return static_cast<int>(pair.second) == v; });
    if (!may_take_over) bytes += model_.bytes[v];
  }
  return bytes;
}

void ProgramBuilder::AddRerunFits(int i) {
  double left = budget_bytes_ + 1e-6;  // as in AddInPlace
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].fixed) {
      left -=
          static_cast<double>(Charged(ChainLeastBytes(static_cast<int>(c))));
    }
  }
  const double unit = std::max(1.0, left);
  // One column holds the sum, so that each rerun's row is short. Its bounds are
  // what its terms allow: the duals prove nothing of a column without any.
  const int stay = result_.program.AddColumn(0, 0, 0, false);
  Terms sum = {{stay, -1}};
  double low = 0;
  double high = 0;
  for (const auto& [v, later] : tracked_[i + 1]) {
    if (!Stays(v, i)) continue;
    for (const Term& term : StayingBytes(v, i)) {
      sum.push_back({term.column, term.coefficient / unit});
      (term.coefficient < 0 ? low : high) += term.coefficient / unit;
    }
  }
  result_.program.columns[stay].lower = low;
  result_.program.columns[stay].upper = high;
  result_.program.AddRow(0, 0, sum);
  for (auto rerun = reruns_.lower_bound({i, 0});
       rerun != reruns_.end() && rerun->first.first == i; ++rerun) {
    const auto [key, column] = *rerun;
    const int n = key.second;
    Terms terms = {{stay, 1},
                   {column, static_cast<double>(RunBytes(n)) / unit}};
    // Inputs and outputs count once.
    for (const std::vector<int>* touched :
         {&model_.reads[n], &model_.makes[n]}) {
      for (int v : *touched) {
        if (Stays(v, i)) Append(terms, StayingBytes(v, i), -1 / unit);
      }
    }
    result_.program.AddRow(-kNoLimit, left / unit, terms);
  }
}

}  // namespace loadline::planner
