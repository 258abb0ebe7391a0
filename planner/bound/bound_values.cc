// Tested in tests/planner/bound/bound_values_test.cc.
#include "planner/bound/bound_values.h"

#include <algorithm>

namespace loadline::planner {
namespace {

// May an output of the node take over the value's bytes?
bool MayLoseBytes(const SearchModel& model, int node, int v) {
  const auto& pairs = model.problem->nodes[node].inplace;
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return static_cast<int>(pair.first) == v;
  });
}

}  // namespace

ValueColumns::ValueColumns(const BoundContext& context,
                           const TrackedValues& tracked)
    : context_(context), in_(context.epochs.count() + 1) {
  for (int i = 1; i <= context.epochs.count(); ++i) {
    for (int v : tracked.In(i)) AddValue(i, v, in_[i][v]);
  }
  AddReruns();
  for (const auto& [key, column] : reruns_) {
    AddRerunRows(key.first, key.second, column);
  }
  for (int i = 1; i < context.epochs.count(); ++i) {
    for (auto& [v, column] : in_[i]) AddRecodes(i, v, column);
  }
}

const ValueColumn* ValueColumns::Find(int value, int epoch) const {
  const auto found = in_[epoch].find(value);
  return found == in_[epoch].end() ? nullptr : &found->second;
}

void ValueColumns::AddValue(int i, int v, ValueColumn& column) {
  const auto& [model, least, epochs, free, budget_bytes, rows] = context_;
  column.keep = rows.Binary();
  const int cut = epochs.cut(i);
  if (context_.Reads(cut, v) && !MayLoseBytes(model, cut, v)) {
    rows.column(column.keep).lower = 1;
  }
  if (model.may_copy[v]) {
    column.host = rows.Binary();
    column.in = rows.Binary();
    rows.AtLeast(0, {{column.host, 1}, {column.in, -1}});
  }
  AddCodecs(i, v, column);
}

void ValueColumns::AddCodecs(int i, int v, ValueColumn& column) {
  BoundRows& rows = context_.rows;
  const std::vector<Codec>& codecs = context_.model.stash[v];
  for (size_t c = 0; c < codecs.size(); ++c) {
    column.encoded.push_back(rows.Binary());
    column.decode.push_back(
        rows.Work(i, static_cast<double>(codecs[c].decode_ns)));
    rows.AtLeast(0, {{column.encoded[c], 1}, {column.decode[c], -1}});
    const auto [once, added] = encodes_.try_emplace({v, c}, -1);
    if (added) {
      // The encode may have run before a span that is cut off; then it is free.
      once->second = rows.WorkSomewhere(
          context_.epochs.to_end() ? static_cast<double>(codecs[c].encode_ns)
                                   : 0);
    }
    rows.AtLeast(0, {{once->second, 1}, {column.encoded[c], -1}});
  }
}

void ValueColumns::AddRecodes(int i, int v, ValueColumn& column) {
  BoundRows& rows = context_.rows;
  for (size_t c = 0; c < column.encoded.size(); ++c) {
    const Codec& codec = context_.model.stash[v][c];
    const int recode = rows.Work(i, static_cast<double>(codec.decode_ns));
    column.recode.push_back(recode);
    Terms available = Available(v, i);
    available.push_back({recode, -1});
    rows.AtLeast(0, available);
    rows.AtLeast(0, {{encodes_.at({v, c}), 1}, {recode, -1}});
  }
}

Terms ValueColumns::Arrivals(int v, int i) const {
  const ValueColumn* column = Find(v, i);
  if (column == nullptr) return {};
  Terms terms;
  if (column->in >= 0) terms.push_back({column->in, 1});
  for (int decode : column->decode) terms.push_back({decode, 1});
  const int producer = context_.model.producer[v];
  if (producer >= 0) {
    const auto again = reruns_.find({i, producer});
    if (again != reruns_.end()) terms.push_back({again->second, 1});
  }
  return terms;
}

Terms ValueColumns::Available(int v, int i) const {
  Terms terms = Arrivals(v, i);
  terms.push_back({in_[i].at(v).keep, 1});
  return terms;
}

void ValueColumns::AddReruns() {
  const SearchModel& model = context_.model;
  for (int i = 1; i <= context_.epochs.count(); ++i) {
    for (const auto& [v, column] : in_[i]) {
      const int producer = model.producer[v];
      if (producer < 0 || !model.may_rerun[producer] ||
          reruns_.count({i, producer}) > 0) {
        continue;
      }
      reruns_[{i, producer}] = context_.rows.Work(
          i, static_cast<double>(context_.least.node_ns[producer]));
    }
  }
}

void ValueColumns::AddRerunRows(int i, int node, int column) {
  BoundRows& rows = context_.rows;
  if (context_.free.Has(node)) {
    rows.AtLeast(0, {{context_.free.Ran(node), 1}, {column, -1}});
  }
  for (int u : context_.model.reads[node]) {
    if (context_.model.chain_of[u] >= 0) continue;  // ChainColumns has those
    Terms terms = Available(u, i);
    terms.push_back({column, -1});
    rows.AtLeast(0, terms);
  }
}

}  // namespace loadline::planner
