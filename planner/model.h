// The Problem in the form the search reads: charged bytes, copy times, chains
// of versions, and which input each node may overwrite. Computed once per
// Solve; plain ints index nodes and values inside the search.
#ifndef LOADLINE_PLANNER_MODEL_H_
#define LOADLINE_PLANNER_MODEL_H_

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace loadline::planner {

// The versions of one persistent value, oldest first; one entry if no node
// updates it.
struct Chain {
  std::vector<int> versions;
  bool can_host = false;  // may live on the host between steps
};

struct Model {
  const Problem* problem = nullptr;
  ProblemIndex index;
  int node_count = 0;
  int value_count = 0;
  int64_t alignment_bytes = 1;  // 1 without addresses

  // Charged bytes: rounded up to the alignment where addresses matter.
  std::vector<int64_t> bytes;            // by value
  std::vector<int64_t> workspace_bytes;  // by node
  std::vector<int64_t> node_ns;
  std::vector<std::vector<int>> reads;  // by node, without repeats
  std::vector<std::vector<int>> makes;  // by node
  // overwrites[node] = (input, output) pairs, each input and output at most
  // once: the output takes over the input's bytes when the input dies there.
  std::vector<std::vector<std::pair<int, int>>> overwrites;
  std::vector<char> may_rerun;  // by node: recompute allowed and permitted

  std::vector<int> producer;  // by value, -1: input of the step
  std::vector<int> chain_of;  // by value, -1: not persistent
  std::vector<Chain> chains;
  std::vector<char> is_output;
  std::vector<char> may_copy;  // by value: offload allowed and permitted
  std::vector<double> out_ns;  // by value: one copy to the host, alone
  std::vector<double> in_ns;

  double latency_ns = 0;
  double d2h_bytes_per_ns = 0;
  double h2d_bytes_per_ns = 0;
  double bidirectional = 1;
  int64_t host_limit_bytes = 0;
  int64_t compute_ns = 0;  // every node once

  // Whether node's run may take over the bytes of `value` for an output.
  bool Overwrites(int node, int value) const {
    for (const auto& [in, out] : overwrites[node]) {
      if (in == value) return true;
    }
    return false;
  }
  bool FirstVersion(int value) const {
    return chain_of[value] >= 0 &&
           chains[chain_of[value]].versions.front() == value;
  }
  bool LastVersion(int value) const {
    return chain_of[value] >= 0 &&
           chains[chain_of[value]].versions.back() == value;
  }
  // The node that replaces this version by the next; -1 if none does.
  int Updater(int value) const {
    const ValueId next = index.next_version[value];
    return next == kNoValue ? -1 : producer[Index(next)];
  }
};

// Requires a valid problem.
Model MakeModel(const Problem& problem, bool allow_recompute,
                bool allow_offload);

// Bytes rounded up to a multiple of `alignment`.
int64_t AlignUp(int64_t bytes, int64_t alignment);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_MODEL_H_
