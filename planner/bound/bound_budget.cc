// Tested in tests/planner/bound/bound_budget_test.cc.
#include "planner/bound/bound_budget.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace loadline::planner {
namespace {

// Below a byte, above what rounding of scaled coefficients can lose.
constexpr double kRoundingBytes = 1e-6;

// The row of one cut: terms <= left, in bytes.
class BudgetRow {
 public:
  BudgetRow(const BoundContext& context, const ValueColumns& values,
            const ChainColumns& chains, int i)
      : context_(context),
        model_(context.model),
        values_(values),
        chains_(chains),
        i_(i),
        cut_(context.epochs.cut(i)),
        left_(context.budget_bytes -
              static_cast<double>(context.least.workspace_bytes[cut_])) {}

  void Add() {
    CountOwn();
    CountTracked();
    CountChains();
    TakeInPlace();
    double unit = 1;
    for (const Term& term : terms_) {
      unit = std::max(unit, std::fabs(term.coefficient));
    }
    for (Term& term : terms_) term.coefficient /= unit;
    context_.rows.AtMost(left_ / unit, terms_);
  }

 private:
  void CountOwn() {
    for (int v : model_.makes[cut_]) {
      if (model_.chain_of[v] < 0) left_ -= Bytes(model_.bytes[v]);
    }
    for (int v : model_.reads[cut_]) {
      if (model_.chain_of[v] < 0 && values_.Find(v, i_) == nullptr) {
        left_ -= Bytes(model_.bytes[v]);
      }
    }
  }

  void CountTracked() {
    for (const auto& [v, column] : values_.In(i_)) {
      // What the cut reads and may overwrite counts whole; see TakeInPlace.
      if (context_.Reads(cut_, v)) {
        left_ -= Bytes(model_.bytes[v]);
      } else {
        terms_.push_back({column.keep, Bytes(model_.bytes[v])});
      }
      for (size_t c = 0; c < column.encoded.size(); ++c) {
        terms_.push_back(
            {column.encoded[c],
             Bytes(ChargedBytes(model_, model_.stash[v][c].bytes))});
      }
    }
  }

  void CountChains() {
    for (size_t c = 0; c < chains_.chains().size(); ++c) {
      const ChainColumn& chain = chains_.chains()[c];
      if (chain.anywhere) continue;
      const std::vector<int>& versions = model_.chains[c].versions;
      const bool read =
          std::any_of(versions.begin(), versions.end(),
                      [&](int v) { return context_.Reads(cut_, v); });
      const double bytes =
          Bytes(read ? model_.bytes[versions.front()]
                     : ChargedBytes(model_, LeastChainBytes(
                                                model_, static_cast<int>(c))));
      if (chain.fixed || read) {
        left_ -= bytes;
      } else {
        terms_.push_back({chain.keep[i_], bytes});
      }
    }
  }

  void TakeInPlace() {
    std::map<int, Terms> by_input, by_output;
    for (const auto& [from, to] : model_.problem->nodes[cut_].inplace) {
      const int in = static_cast<int>(from);
      const int out = static_cast<int>(to);
      if (model_.chain_of[in] >= 0 &&
          model_.chain_of[in] == model_.chain_of[out]) {
        continue;
      }
      const int taken = context_.rows.Binary();
      terms_.push_back({taken, -Bytes(model_.bytes[out])});
      by_input[in].push_back({taken, 1});
      by_output[out].push_back({taken, 1});
    }
    left_ += kRoundingBytes;
    for (const auto& [out, columns] : by_output) {
      context_.rows.AtMost(1, columns);
    }
    for (auto& [in, columns] : by_input) {
      const ValueColumn* input = values_.Find(in, i_);
      if (input == nullptr) {
        context_.rows.AtMost(1, columns);
        continue;
      }
      columns.push_back({input->keep, 1});
      context_.rows.program().AddRow(1, 1, columns);
    }
  }

  static double Bytes(int64_t bytes) { return static_cast<double>(bytes); }

  const BoundContext& context_;
  const SearchModel& model_;
  const ValueColumns& values_;
  const ChainColumns& chains_;
  const int i_;
  const int cut_;
  double left_;
  Terms terms_;
};

}  // namespace

void AddBudgetRows(const BoundContext& context, const ValueColumns& values,
                   const ChainColumns& chains) {
  for (int i = 1; i <= context.epochs.count(); ++i) {
    BudgetRow(context, values, chains, i).Add();
  }
}

}  // namespace loadline::planner
