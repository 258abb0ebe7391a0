// Tested in tests/planner/bound/bound_costs_test.cc.
#include "planner/bound/bound_costs.h"

#include <algorithm>

#include "planner/base/align.h"

namespace loadline::planner {

LeastCosts FindLeastCosts(const SearchModel& model) {
  LeastCosts least;
  for (int n = 0; n < model.node_count; ++n) {
    int64_t ns = model.node_ns[n];
    int64_t bytes = model.workspace_bytes[n];
    for (const Variant& variant : model.variants[n]) {
      ns = std::min(ns, variant.time_ns);
      bytes = std::min(bytes, ChargedBytes(model, variant.workspace_bytes));
    }
    least.node_ns.push_back(ns);
    least.workspace_bytes.push_back(bytes);
    least.compute_ns += ns;
  }
  return least;
}

int64_t LeastValueBytes(const SearchModel& model, int value) {
  int64_t bytes = model.problem->values[value].bytes;
  for (const Codec& codec : model.stash[value]) {
    bytes = std::min(bytes, codec.bytes);
  }
  return bytes;
}

int64_t LeastChainBytes(const SearchModel& model, int chain) {
  int64_t bytes = INT64_MAX;
  for (int version : model.chains[chain].versions) {
    bytes = std::min(bytes, LeastValueBytes(model, version));
  }
  return bytes;
}

int64_t ChargedBytes(const SearchModel& model, int64_t bytes) {
  return AlignUp(bytes, model.alignment_bytes);
}

}  // namespace loadline::planner
