// Time in the bound where values may be copied: the compute lane in every
// epoch, and both copy lanes over the spans in which copies surely lie: what is
// on the host when a cut starts was copied out before, what comes back in an
// epoch starts after its begin. Tested through bound_test.cc.
#include <algorithm>
#include <map>
#include <utility>

#include "planner/bound/bound_builder.h"

namespace loadline::planner {

void ProgramBuilder::AddTimes() {
  const double unit = result_.unit_ns;
  const double most =
      std::max(0.0, horizon_ns_ - static_cast<double>(least_.compute_ns));
  extra_ = result_.program.AddColumn(1, 0, most / unit, false);
  starts_.push_back(-1);
  for (int i = 1; i <= epochs_; ++i) {
    starts_.push_back(
        result_.program.AddColumn(0, 0, horizon_ns_ / unit, false));
  }
  work_.resize(epochs_ + 1);
}

double ProgramBuilder::OutTime(int64_t bytes) const {
  return (model_.latency_ns +
          static_cast<double>(bytes) / model_.d2h_bytes_per_ns) /
         result_.unit_ns;
}

double ProgramBuilder::InTime(int64_t bytes) const {
  return (model_.latency_ns +
          static_cast<double>(bytes) / model_.h2d_bytes_per_ns) /
         result_.unit_ns;
}

double ProgramBuilder::AddSpan(int from, int until, Terms& terms) const {
  if (from > 0) terms.push_back({starts_[from], -1});
  if (until <= epochs_) {
    terms.push_back({starts_[until], 1});
    return 0;
  }
  terms.push_back({extra_, 1});
  return static_cast<double>(least_.compute_ns) / result_.unit_ns;
}

void ProgramBuilder::AddLanes() {
  AddCompute();
  for (int i = 1; i <= epochs_ + 1; ++i) AddOutsBefore(i);
  for (int i = 1; i <= epochs_; ++i) AddOutsAfter(i);
  for (int i = 0; i <= epochs_; ++i) AddInsFrom(i);
  for (int i = 1; i <= epochs_; ++i) AddInsBefore(i);
  if (model_.bidirectional < 1) AddBoth();
}

void ProgramBuilder::AddCompute() {
  const double unit = result_.unit_ns;
  std::vector<double> sure(epochs_ + 1, 0);
  std::map<std::pair<int, int>, double> unsure;
  std::vector<Terms> portions(epochs_ + 1);
  for (int n = 0; n < model_.node_count; ++n) {
    const double ns = static_cast<double>(least_.node_ns[n]) / unit;
    if (ran_[n] >= 0) {
      sure[1] += ns;
      portions[0].push_back({ran_[n], -ns});
      portions[1].push_back({ran_[n], ns});
    } else if (until_[n] == from_[n] + 1) {
      sure[from_[n]] += ns;
    } else {
      unsure[{from_[n], until_[n]}] += ns;
    }
  }
  for (const auto& [range, ns] : unsure) {
    Terms all;
    for (int i = range.first; i < range.second; ++i) {
      const int column = result_.program.AddColumn(0, 0, ns, false);
      all.push_back({column, 1});
      portions[i].push_back({column, -1});
    }
    result_.program.AddRow(ns, ns, all);
  }
  Terms total = {{extra_, 1}};
  for (int i = 0; i <= epochs_; ++i) {
    Terms terms = portions[i];
    Append(terms, work_[i], -1);
    Append(total, work_[i], -1);
    const double constant = AddSpan(i, i + 1, terms);
    Row(sure[i] - constant, terms);
  }
  Append(total, encode_work_, -1);
  Row(0, total);
}

// All that is on the host when cut i starts was copied out before.
void ProgramBuilder::AddOutsBefore(int i) {
  Terms terms;
  const double constant = AddSpan(0, i, terms);
  for (const auto& [v, tracked] : tracked_[std::min(i, epochs_)]) {
    if (tracked.host < 0) continue;
    terms.push_back({tracked.host, -OutTime(LeastBytes(v))});
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    terms.push_back({chains_[c].out[i], -ChainOutTime(static_cast<int>(c))});
  }
  Row(-constant, terms);
}

// What lives on the host goes out after its last update.
void ProgramBuilder::AddOutsAfter(int i) {
  Terms terms;
  const double constant = AddSpan(i, epochs_ + 1, terms);
  for (size_t c = 0; c < chains_.size(); ++c) {
    const int updater = LastUpdater(static_cast<int>(c));
    if (chains_[c].home_host < 0 || updater < 0 || from_[updater] < i) {
      continue;
    }
    terms.push_back({chains_[c].home_host, -ChainOutTime(static_cast<int>(c))});
  }
  Row(-constant, terms);
}

// What comes in epoch i or later comes after its begin.
void ProgramBuilder::AddInsFrom(int i) {
  Terms terms;
  const double constant = AddSpan(i, epochs_ + 1, terms);
  for (int j = std::max(i, 1); j <= epochs_; ++j) {
    for (const auto& [v, tracked] : tracked_[j]) {
      if (tracked.in < 0) continue;
      terms.push_back({tracked.in, -InTime(LeastBytes(v))});
    }
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    for (int j = i; j <= epochs_; ++j) {
      terms.push_back({chains_[c].in[j], -ChainInTime(static_cast<int>(c))});
    }
  }
  Row(-constant, terms);
}

// What lives on the host and is read before cut i came before.
void ProgramBuilder::AddInsBefore(int i) {
  Terms terms;
  const double constant = AddSpan(0, i, terms);
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    const std::vector<int> touchers = Touchers(static_cast<int>(c));
    const bool before = std::any_of(
        touchers.begin(), touchers.end(),
        [&](int n) { return n == cuts_[i - 1] || ancestors_[i - 1][n]; });
    if (!before) continue;
    terms.push_back({chains_[c].home_host, -ChainInTime(static_cast<int>(c))});
  }
  Row(-constant, terms);
}

// While both lanes move bytes, together they do at most twice the factor of
// the work of one.
void ProgramBuilder::AddBoth() {
  Terms terms;
  double constant = AddSpan(0, epochs_ + 1, terms);
  const double speed = std::max(1.0, 2 * model_.bidirectional);
  for (Term& term : terms) term.coefficient *= speed;
  constant *= speed;
  const double latency = model_.latency_ns / result_.unit_ns;
  for (const auto& [v, tracked] : tracked_[epochs_]) {
    if (tracked.host < 0) continue;
    terms.push_back({tracked.host, latency - OutTime(LeastBytes(v))});
  }
  for (int j = 1; j <= epochs_; ++j) {
    for (const auto& [v, tracked] : tracked_[j]) {
      if (tracked.in < 0) continue;
      terms.push_back({tracked.in, latency - InTime(LeastBytes(v))});
    }
  }
  for (size_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].home_host < 0) continue;
    const int chain = static_cast<int>(c);
    terms.push_back(
        {chains_[c].out[epochs_ + 1], latency - ChainOutTime(chain)});
    for (int j = 0; j <= epochs_; ++j) {
      terms.push_back({chains_[c].in[j], latency - ChainInTime(chain)});
    }
  }
  Row(-constant, terms);
}

}  // namespace loadline::planner
