// Where a value may be when an epoch begins, what brings it back to the device
// (a copy, a decode, its node once more, if the inputs of that are there), and
// the readers that need one or the other. Tested through bound_test.cc.
#include <algorithm>
#include <utility>

#include "planner/bound/bound_builder.h"

namespace loadline::planner {

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
      // It may have been before the span.
      const int64_t encode_ns = until_node_ < 0 ? codecs[c].encode_ns : 0;
      once->second = Binary(static_cast<double>(encode_ns));
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
  if (made >= 0 && model_.is_output[v] && until_node_ < 0) add(-1);
  for (const NodeId id : model_.index.consumers[v]) {
    const int n = static_cast<int>(id);
    if (!in_span_[n]) continue;
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
    if (model_.is_output[v] && until_node_ < 0) {
      needs.push_back({epochs_, epochs_ + 1});
    }
    for (const NodeId id : model_.index.consumers[v]) {
      const int n = static_cast<int>(id);
      if (!in_span_[n]) continue;
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

}  // namespace loadline::planner
