// Tested in tests/planner/bound/bound_lanes_test.cc.
#include "planner/bound/bound_lanes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace loadline::planner {

LaneTimes::LaneTimes(int epochs, double compute_ns, double horizon_ns,
                     BoundRows& rows)
    : compute_(compute_ns / rows.unit_ns()) {
  const double unit = rows.unit_ns();
  const double most = std::max(0.0, horizon_ns - compute_ns);
  extra_ = rows.program().AddColumn(1, 0, most / unit, false);
  starts_.push_back(-1);
  for (int i = 1; i <= epochs; ++i) {
    starts_.push_back(rows.program().AddColumn(0, 0, horizon_ns / unit, false));
  }
}

double LaneTimes::AddSpan(int from, int until, Terms& terms) const {
  if (from > 0) terms.push_back({starts_[from], -1});
  if (until < static_cast<int>(starts_.size())) {
    terms.push_back({starts_[until], 1});
    return 0;
  }
  terms.push_back({extra_, 1});
  return compute_;
}

namespace {

class LaneRows {
 public:
  LaneRows(const BoundContext& context, const LaneTimes& times,
           const ValueColumns& values, const ChainColumns& chains)
      : context_(context),
        model_(context.model),
        epochs_(context.epochs.count()),
        rows_(context.rows),
        times_(times),
        values_(values),
        chain_columns_(chains),
        chains_(chains.chains()) {}

  void Add() {
    AddCompute();
    for (int i = 1; i <= epochs_ + 1; ++i) AddOutsBefore(i);
    for (int i = 1; i <= epochs_; ++i) AddOutsAfter(i);
    for (int i = 0; i <= epochs_; ++i) AddInsFrom(i);
    for (int i = 1; i <= epochs_; ++i) AddInsBefore(i);
    if (model_.bidirectional < 1) AddBoth();
    if (model_.copy_overhead_ns > 0) ChargeOverheads();
  }

 private:
  double OutTime(int64_t bytes) const {
    return (model_.out_latency_ns +
            static_cast<double>(bytes) / model_.d2h_bytes_per_ns) /
           rows_.unit_ns();
  }
  double InTime(int64_t bytes) const {
    return (model_.in_latency_ns +
            static_cast<double>(bytes) / model_.h2d_bytes_per_ns) /
           rows_.unit_ns();
  }
  double ValueOutTime(int v) const {
    return OutTime(LeastValueBytes(model_, v));
  }
  double ValueInTime(int v) const { return InTime(LeastValueBytes(model_, v)); }
  double ChainOutTime(int c) const {
    return OutTime(LeastChainBytes(model_, c));
  }
  double ChainInTime(int c) const { return InTime(LeastChainBytes(model_, c)); }

  void AddCompute();
  void AddOutsBefore(int i);
  void AddOutsAfter(int i);
  void AddInsFrom(int i);
  void AddInsBefore(int i);
  void AddBoth();
  void ChargeOverheads();

  const BoundContext& context_;
  const SearchModel& model_;
  const int epochs_;
  BoundRows& rows_;
  const LaneTimes& times_;
  const ValueColumns& values_;
  const ChainColumns& chain_columns_;
  const std::vector<ChainColumn>& chains_;
};

void LaneRows::AddCompute() {
  const double unit = rows_.unit_ns();
  std::vector<double> sure(epochs_ + 1, 0);
  std::map<std::pair<int, int>, double> unsure;
  std::vector<Terms> portions(epochs_ + 1);
  for (int n = 0; n < model_.node_count; ++n) {
    const double ns = static_cast<double>(context_.least.node_ns[n]) / unit;
    if (context_.free.Has(n)) {
      sure[1] += ns;
      portions[0].push_back({context_.free.Ran(n), -ns});
      portions[1].push_back({context_.free.Ran(n), ns});
    } else if (context_.epochs.Settled(n)) {
      sure[context_.epochs.From(n)] += ns;
    } else {
      unsure[{context_.epochs.From(n), context_.epochs.Until(n)}] += ns;
    }
  }
  for (const auto& [range, ns] : unsure) {
    Terms all;
    for (int i = range.first; i < range.second; ++i) {
      const int column = rows_.program().AddColumn(0, 0, ns, false);
      all.push_back({column, 1});
      portions[i].push_back({column, -1});
    }
    rows_.program().AddRow(ns, ns, all);
  }
  Terms total = {{times_.extra(), 1}};
  for (int i = 0; i <= epochs_; ++i) {
    Terms terms = portions[i];
    Append(terms, rows_.work(i), -1);
    Append(total, rows_.work(i), -1);
    const double constant = times_.AddSpan(i, i + 1, terms);
    rows_.AtLeast(sure[i] - constant, terms);
  }
  Append(total, rows_.work_somewhere(), -1);
  rows_.AtLeast(0, total);
}

// All that is on the host when cut i starts was copied out before.
void LaneRows::AddOutsBefore(int i) {
  Terms terms;
  const double constant = times_.AddSpan(0, i, terms);
  for (const auto& [v, value] : values_.In(std::min(i, epochs_))) {
    if (value.host < 0) continue;
    terms.push_back({value.host, -ValueOutTime(v)});
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    terms.push_back({chains_[c].out[i], -ChainOutTime(static_cast<int>(c))});
  }
  rows_.AtLeast(-constant, terms);
}

// What lives on the host goes out after its last update.
void LaneRows::AddOutsAfter(int i) {
  Terms terms;
  const double constant = times_.AddSpan(i, epochs_ + 1, terms);
  for (size_t c = 0; c < chains_.size(); ++c) {
    const int updater = chain_columns_.LastUpdater(static_cast<int>(c));
    if (chains_[c].home_host < 0 || updater < 0 ||
        context_.epochs.From(updater) < i) {
      continue;
    }
    terms.push_back({chains_[c].home_host, -ChainOutTime(static_cast<int>(c))});
  }
  rows_.AtLeast(-constant, terms);
}

// What comes in epoch i or later comes after its begin.
void LaneRows::AddInsFrom(int i) {
  Terms terms;
  const double constant = times_.AddSpan(i, epochs_ + 1, terms);
  for (int j = std::max(i, 1); j <= epochs_; ++j) {
    for (const auto& [v, value] : values_.In(j)) {
      if (value.in < 0) continue;
      terms.push_back({value.in, -ValueInTime(v)});
    }
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    for (int j = i; j <= epochs_; ++j) {
      terms.push_back({chains_[c].in[j], -ChainInTime(static_cast<int>(c))});
    }
  }
  rows_.AtLeast(-constant, terms);
}

// What lives on the host and is read before cut i came before.
void LaneRows::AddInsBefore(int i) {
  Terms terms;
  const double constant = times_.AddSpan(0, i, terms);
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    const std::vector<int> readers =
        chain_columns_.Readers(static_cast<int>(c));
    const bool before = std::any_of(readers.begin(), readers.end(), [&](int n) {
      return n == context_.epochs.cut(i) || context_.epochs.RanBefore(n, i);
    });
    if (!before) continue;
    terms.push_back({chains_[c].home_host, -ChainInTime(static_cast<int>(c))});
  }
  rows_.AtLeast(-constant, terms);
}

// While both lanes move bytes, together they do at most twice the factor of
// the work of one.
void LaneRows::AddBoth() {
  Terms terms;
  double constant = times_.AddSpan(0, epochs_ + 1, terms);
  const double speed = std::max(1.0, 2 * model_.bidirectional);
  for (Term& term : terms) term.coefficient *= speed;
  constant *= speed;
  const double out_latency = model_.out_latency_ns / rows_.unit_ns();
  const double in_latency = model_.in_latency_ns / rows_.unit_ns();
  for (const auto& [v, value] : values_.In(epochs_)) {
    if (value.host < 0) continue;
    terms.push_back({value.host, out_latency - ValueOutTime(v)});
  }
  for (int j = 1; j <= epochs_; ++j) {
    for (const auto& [v, value] : values_.In(j)) {
      if (value.in < 0) continue;
      terms.push_back({value.in, in_latency - ValueInTime(v)});
    }
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    const int chain = static_cast<int>(c);
    terms.push_back(
        {chains_[c].out[epochs_ + 1], out_latency - ChainOutTime(chain)});
    for (int j = 0; j <= epochs_; ++j) {
      terms.push_back({chains_[c].in[j], in_latency - ChainInTime(chain)});
    }
  }
  rows_.AtLeast(-constant, terms);
}

// Every copy that is sure to be made adds its overhead to the step. No plan
// within the horizon pays more than the horizon leaves, so neither does a
// coefficient.
void LaneRows::ChargeOverheads() {
  const double cost = std::min(model_.copy_overhead_ns / rows_.unit_ns(),
                               rows_.column(times_.extra()).upper);
  std::map<int, int> last_host;  // by value: by the last epoch that tracks it
  for (int i = 1; i <= epochs_; ++i) {
    for (const auto& [v, value] : values_.In(i)) {
      if (value.host < 0) continue;
      last_host[v] = value.host;
      rows_.column(value.in).cost += cost;
    }
  }
  for (const auto& [v, column] : last_host) rows_.column(column).cost += cost;
  for (const ChainColumn& chain : chains_) {
    if (chain.home_host < 0) continue;
    rows_.column(chain.out[epochs_ + 1]).cost += cost;
    for (int in : chain.in) rows_.column(in).cost += cost;
  }
}

}  // namespace

void AddLaneRows(const BoundContext& context, const LaneTimes& times,
                 const ValueColumns& values, const ChainColumns& chains) {
  LaneRows(context, times, values, chains).Add();
}

}  // namespace loadline::planner
