// The Problem in the form the search reads: charged bytes, copy times, chains
// of versions, and which input each node may overwrite. Computed once per
// Solve; plain ints index nodes and values inside the search.
//
// Codecs and variants are more of the same to the search: a *form* is a value
// or a value encoded with one of its codecs, a *job* is a node, a variant of
// one, or the encode or decode between two forms of a value. Ids below
// value_count and node_count are the values and the nodes as they are.
#ifndef LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_
#define LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_

#include <cstdint>
#include <vector>

#include "planner/problem/permissions.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_tuning.h"

namespace loadline::planner {

// What a run does.
struct Job {
  int node = -1;  // -1: an encode or a decode
  int variant =
      -1;  // of SearchModel::variants of the node; -1: the node as it is
  int value = -1;  // that is encoded or decoded
  int codec = -1;  // of SearchModel::stash of the value
  bool decodes = false;
};

// One codec of one value: its encoded form and the jobs there and back.
struct Coding {
  int form = 0;
  int encode = 0;
  int decode = 0;
};

// The versions of one persistent value, oldest first; one entry if no node
// updates it.
struct Chain {
  std::vector<int> versions;
  bool can_host = false;  // may live on the host between steps
};

struct SearchModel {
  SearchTuning tuning;
  const Problem* problem = nullptr;
  ProblemIndex index;
  int node_count = 0;
  int value_count = 0;
  // What the permissions permit, by node and by value.
  std::vector<std::vector<Variant>> variants;
  std::vector<std::vector<Codec>> stash;

  std::vector<Job> jobs;
  // By node: its jobs, fastest first, each with less workspace than those
  // before it.
  std::vector<std::vector<int>> ways;
  std::vector<std::vector<Coding>> codings;  // by value
  std::vector<int> value_of;                 // by form
  int64_t alignment_bytes = 1;               // 1 without addresses

  // Charged bytes: rounded up to the alignment where addresses matter.
  std::vector<int64_t> bytes;            // by form
  std::vector<int64_t> workspace_bytes;  // by job
  // Not rounded up.
  std::vector<int64_t> raw_bytes;
  std::vector<int64_t> raw_workspace_bytes;
  std::vector<int64_t> node_ns;         // by job
  std::vector<std::vector<int>> reads;  // by job: forms, without repeats
  std::vector<std::vector<int>> makes;  // by job: forms
  // overwrites[job] = (input, output) pairs, each input and output at most
  // once: the output takes over the input's bytes when the input dies there.
  std::vector<std::vector<std::pair<int, int>>> overwrites;
  std::vector<char> may_rerun;  // by job: recompute allowed and permitted

  // By form: its node (an encoded form's is the encode), -1: input of the step.
  std::vector<int> producer;
  std::vector<int> chain_of;  // by form, -1: not persistent
  std::vector<Chain> chains;
  std::vector<char> is_output;  // by form
  std::vector<char> may_copy;   // by form: offload allowed and permitted
  std::vector<double> out_ns;   // by form: one copy to the host, alone
  std::vector<double> in_ns;

  double latency_ns = 0;
  double d2h_bytes_per_ns = 0;
  double h2d_bytes_per_ns = 0;
  double bidirectional = 1;
  bool copies_stop_compute = false;
  double switch_ns = 0;  // Machine::switch_ns
  int64_t host_limit_bytes = 0;
  int64_t compute_ns = 0;  // every node once, each the fastest way

  // How long before its reader a copy back should start, and how long after
  // its maker a copy out should have to end, so that compute need not wait.
  double InLeadNs(int form) const {
    return copies_stop_compute ? 0 : in_ns[form];
  }
  double OutLeadNs(int form) const {
    return copies_stop_compute ? 0 : out_ns[form];
  }
  int job_count() const { return static_cast<int>(jobs.size()); }
  int form_count() const { return static_cast<int>(bytes.size()); }
  // Whether the job's run may take over the bytes of `value` for an output.
  bool Overwrites(int job, int value) const {
    for (const auto& [in, out] : overwrites[job]) {
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

struct SearchModelOptions {
  bool allow_recompute = true;
  bool allow_offload = true;
  Permissions permissions = {};
  SearchTuning tuning = {};
};

// Requires a valid problem that outlives the model.
SearchModel MakeSearchModel(const Problem& problem,
                            const SearchModelOptions& options = {});
inline SearchModel MakeSearchModel(const Problem& problem, bool allow_recompute,
                                   bool allow_offload,
                                   const Permissions& permissions = {}) {
  return MakeSearchModel(problem,
                         {allow_recompute, allow_offload, permissions, {}});
}

// The same with lanes that never slow each other down, each as slow as both
// are when both move: what fits its times is no slower in the model itself.
SearchModel WithApartLanes(SearchModel model);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_
