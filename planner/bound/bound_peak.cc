// The lower bound on the peak. Tested in tests/planner/bound/bound_peak_test.cc
// by hand, and in tests/planner/solve/brute_force_test.cc against brute force.
#include <algorithm>
#include <utility>

#include "planner/base/align.h"
#include "planner/bound/bound.h"
#include "planner/bound/bound_costs.h"
#include "planner/bound/bound_cuts.h"

namespace loadline::planner {
namespace {

// Persistent values of which some version is on the device at any time.
std::vector<int> NeverLeaving(const SearchModel& model) {
  std::vector<int> values;
  for (size_t c = 0; c < model.chains.size(); ++c) {
    const int chain = static_cast<int>(c);
    if (!MayLeave(model, chain) && !MayLiveOnHost(model, chain)) {
      values.push_back(model.chains[c].versions.front());
    }
  }
  return values;
}

int64_t RawBytes(const SearchModel& model, int value) {
  return model.problem->values[value].bytes;
}

// Rounds every buffer up to the alignment, or none.
class Sizes {
 public:
  Sizes(const SearchModel& model, bool charged)
      : model_(model), alignment_(charged ? model.alignment_bytes : 1) {}
  int64_t Of(int value) const { return Round(RawBytes(model_, value)); }
  int64_t Round(int64_t bytes) const { return AlignUp(bytes, alignment_); }

 private:
  const SearchModel& model_;
  const int64_t alignment_;
};

int64_t LeastWorkspaceBytes(const SearchModel& model, int node) {
  int64_t bytes = model.problem->nodes[node].workspace_bytes;
  for (const Variant& variant : model.variants[node]) {
    bytes = std::min(bytes, variant.workspace_bytes);
  }
  return bytes;
}

// The most bytes that outputs may share with inputs while the node runs.
int64_t SharedBytes(const SearchModel& model, const Sizes& sizes, int node) {
  std::vector<int> from, to;
  for (const auto& [in, out] : model.problem->nodes[node].inplace) {
    from.push_back(static_cast<int>(in));
    to.push_back(static_cast<int>(out));
  }
  int64_t least = INT64_MAX;
  for (std::vector<int>* side : {&from, &to}) {
    std::sort(side->begin(), side->end());
    side->erase(std::unique(side->begin(), side->end()), side->end());
    int64_t bytes = 0;
    for (int v : *side) bytes += sizes.Of(v);
    least = std::min(least, bytes);
  }
  return least;
}

void Raise(const SearchModel& model, int64_t bytes, int node,
           std::vector<int> values, PeakBound& bound) {
  if (bytes < bound.bytes || (bytes == bound.bytes && !bound.values.empty())) {
    return;
  }
  std::stable_sort(values.begin(), values.end(), [&](int a, int b) {
    return RawBytes(model, a) > RawBytes(model, b);
  });
  bound = {bytes, node, std::move(values)};
}

PeakBound BoundPeak(const SearchModel& model, const Sizes& sizes) {
  PeakBound bound;
  const std::vector<int> staying = NeverLeaving(model);
  std::vector<int64_t> least_bytes(model.chains.size(), 0);
  int64_t staying_bytes = 0;
  for (int v : staying) {
    const int chain = model.chain_of[v];
    least_bytes[chain] = sizes.Round(LeastChainBytes(model, chain));
    staying_bytes += least_bytes[chain];
  }
  for (int node = 0; node < model.node_count; ++node) {
    std::vector<int> values = model.reads[node];
    values.insert(values.end(), model.makes[node].begin(),
                  model.makes[node].end());
    int64_t bytes = sizes.Round(LeastWorkspaceBytes(model, node)) -
                    SharedBytes(model, sizes, node) + staying_bytes;
    std::vector<int> touched;
    for (int v : values) {
      bytes += sizes.Of(v);
      if (model.chain_of[v] >= 0) touched.push_back(model.chain_of[v]);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (int chain : touched) bytes -= least_bytes[chain];
    if (bytes < bound.bytes || (bytes == bound.bytes && node > 0)) continue;
    for (int v : staying) {
      if (!std::binary_search(touched.begin(), touched.end(),
                              model.chain_of[v])) {
        values.push_back(v);
      }
    }
    Raise(model, bytes, node, std::move(values), bound);
  }
  std::vector<int> at_start, at_end;
  int64_t start_bytes = 0, end_bytes = 0;
  for (int v = 0; v < model.value_count; ++v) {
    const bool kept =
        model.chain_of[v] >= 0 && !MayLiveOnHost(model, model.chain_of[v]);
    const bool read = !model.index.consumers[v].empty();
    if (model.producer[v] < 0 && (model.chain_of[v] >= 0 ? kept : read)) {
      at_start.push_back(v);
      start_bytes += sizes.Of(v);
    }
    if (model.is_output[v] || (kept && model.LastVersion(v))) {
      at_end.push_back(v);
      end_bytes += sizes.Of(v);
    }
  }
  Raise(model, start_bytes, -1, std::move(at_start), bound);
  Raise(model, end_bytes, -1, std::move(at_end), bound);
  return bound;
}

}  // namespace

PeakBound BoundPeak(const SearchModel& model) {
  return BoundPeak(model, Sizes(model, false));
}

int64_t BoundChargedPeak(const SearchModel& model) {
  return BoundPeak(model, Sizes(model, true)).bytes;
}

}  // namespace loadline::planner
