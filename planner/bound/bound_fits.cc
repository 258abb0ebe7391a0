// Tested in tests/planner/bound/bound_fits_test.cc.
#include "planner/bound/bound_fits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace loadline::planner {
namespace {

// Below a byte, above what rounding of scaled coefficients can lose.
constexpr double kRoundingBytes = 1e-6;

class RerunFits {
 public:
  RerunFits(const BoundContext& context, const ValueColumns& values,
            const ChainColumns& chains)
      : context_(context),
        model_(context.model),
        values_(values),
        chains_(chains.chains()),
        left_bytes_(context.budget_bytes + kRoundingBytes) {
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (!chains_[c].fixed) continue;
      left_bytes_ -= static_cast<double>(
          ChargedBytes(model_, LeastChainBytes(model_, static_cast<int>(c))));
    }
    unit_bytes_ = std::max(1.0, left_bytes_);
  }

  void AddEpoch(int i) {
    const int stay = AddStaying(i);
    for (auto rerun = values_.reruns().lower_bound({i, 0});
         rerun != values_.reruns().end() && rerun->first.first == i; ++rerun) {
      AddRerun(i, rerun->first.second, rerun->second, stay);
    }
  }

 private:
  // One column for the sum of Staying, so that each rerun's row is short. Its
  // limits are what its terms allow: weak duality (mip.h) proves nothing with a
  // column that has none.
  int AddStaying(int i) {
    MipProgram& program = context_.rows.program();
    const int stay = program.AddColumn(0, 0, 0, false);
    Terms sum = {{stay, -1}};
    double low = 0;
    double high = 0;
    for (const auto& [v, later] : values_.In(i + 1)) {
      if (!Tracked(v, i)) continue;
      for (const Term& term : Staying(v, i)) {
        sum.push_back({term.column, term.coefficient / unit_bytes_});
        (term.coefficient < 0 ? low : high) += term.coefficient / unit_bytes_;
      }
    }
    program.columns[stay].lower = low;
    program.columns[stay].upper = high;
    program.AddRow(0, 0, sum);
    return stay;
  }

  void AddRerun(int i, int n, int column, int stay) {
    Terms terms = {{stay, 1},
                   {column, static_cast<double>(RunBytes(n)) / unit_bytes_}};
    // Inputs and outputs count once.
    for (const std::vector<int>* own : {&model_.reads[n], &model_.makes[n]}) {
      for (int v : *own) {
        if (Tracked(v, i)) Append(terms, Staying(v, i), -1 / unit_bytes_);
      }
    }
    context_.rows.AtMost(left_bytes_ / unit_bytes_, terms);
  }

  // At both ends of epoch i, and not away on the host in between?
  bool Tracked(int v, int i) const {
    return !model_.may_copy[v] && values_.Find(v, i) != nullptr &&
           values_.Find(v, i + 1) != nullptr;
  }

  Terms Staying(int v, int i) const {
    const double bytes = static_cast<double>(model_.bytes[v]);
    Terms terms = {{values_.Find(v, i + 1)->keep, bytes}};
    Append(terms, values_.Arrivals(v, i), -bytes);
    for (int recode : values_.Find(v, i)->recode) {
      terms.push_back({recode, -bytes});
    }
    return terms;
  }

  // At least what a run of the node has on the device, less the persistent
  // values that are always there.
  int64_t RunBytes(int n) const {
    int64_t bytes = context_.least.workspace_bytes[n];
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

  const BoundContext& context_;
  const SearchModel& model_;
  const ValueColumns& values_;
  const std::vector<ChainColumn>& chains_;
  double left_bytes_;
  double unit_bytes_ = 1;
};

}  // namespace

void AddRerunFitRows(const BoundContext& context, const ValueColumns& values,
                     const ChainColumns& chains) {
  RerunFits fits(context, values, chains);
  for (int i = 1; i < context.epochs.count(); ++i) fits.AddEpoch(i);
}

}  // namespace loadline::planner
