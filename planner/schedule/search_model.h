// The Problem as the search reads it: charged bytes, copy times, chains of
// versions, and which input each node may overwrite. Computed once per Solve;
// plain ints index nodes and values inside the search.
//
// Codecs and variants need no code of their own in the search: a
// *representation* is a value, or a value encoded with one of its codecs; a
// *job* is a node, a variant of one, or the encode or decode between two
// representations. Ids below value_count and node_count are the values and the
// nodes themselves.
#ifndef LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_
#define LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_

#include <cstdint>
#include <vector>

#include "planner/problem/permissions.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_tuning.h"

namespace loadline::planner {

// What a Run item runs.
struct Job {
  int node = -1;  // -1: an encode or a decode
  // Index into SearchModel::variants of the node; -1: the node itself.
  int variant = -1;
  int value = -1;  // the value that is encoded or decoded
  int codec = -1;  // index into SearchModel::stash of the value
  bool decodes = false;
};

// One codec of one value: the encoded representation and its two jobs.
struct Coding {
  int encoded = 0;  // representation
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
  SearchTuning tuning;  // of the search over this model
  const Problem* problem = nullptr;
  ProblemIndex index;
  int node_count = 0;
  int value_count = 0;
  // Permitted variants by node, permitted codecs by value.
  std::vector<std::vector<Variant>> variants;
  std::vector<std::vector<Codec>> stash;

  std::vector<Job> jobs;
  // By node: its jobs, fastest first, each with less workspace than those
  // before it.
  std::vector<std::vector<int>> jobs_of;
  std::vector<std::vector<Coding>> codings;  // by value
  std::vector<int> value_of;                 // by representation
  int64_t alignment_bytes = 1;               // 1 without addresses

  // Charged bytes: rounded up to the alignment where addresses matter.
  std::vector<int64_t> bytes;            // by representation
  std::vector<int64_t> workspace_bytes;  // by job
  // Not rounded up.
  std::vector<int64_t> raw_bytes;
  std::vector<int64_t> raw_workspace_bytes;
  std::vector<int64_t> node_ns;  // by job
  std::vector<std::vector<int>>
      reads;  // by job: representations, without repeats
  std::vector<std::vector<int>> makes;  // by job: representations
  // overwrites[job] = (input, output) pairs, each input and output at most
  // once: the output takes over the input's bytes when the input dies there.
  std::vector<std::vector<std::pair<int, int>>> overwrites;
  std::vector<char> may_rerun;  // by job: recompute allowed and permitted

  // By representation: its node (of an encoded one, the encode job); -1: input
  // of the step.
  std::vector<int> producer;
  std::vector<int> chain_of;  // by representation, -1: not persistent
  std::vector<Chain> chains;
  std::vector<char> is_output;  // by representation
  std::vector<char>
      may_copy;  // by representation: offload allowed and permitted
  std::vector<double> out_ns;  // by representation: one copy to the host, alone
  std::vector<double> in_ns;

  double out_latency_ns = 0;
  double in_latency_ns = 0;
  double d2h_bytes_per_ns = 0;
  double h2d_bytes_per_ns = 0;
  double bidirectional = 1;
  bool copies_exclude_compute = false;
  double copy_overhead_ns = 0;  // Machine::copy_overhead_ns
  int64_t host_limit_bytes = 0;
  int64_t compute_ns = 0;  // every node once, as its fastest variant

  // How long before its first read a copy back must start, and how long after
  // the value is made a copy out needs to end, so that compute does not wait.
  double InLeadNs(int value) const {
    return copies_exclude_compute ? 0 : in_ns[value];
  }
  double OutLeadNs(int value) const {
    return copies_exclude_compute ? 0 : out_ns[value];
  }
  int job_count() const { return static_cast<int>(jobs.size()); }
  int representation_count() const { return static_cast<int>(bytes.size()); }
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
  // The node after which no schedule accesses this version; -1: none. The last
  // version ends in the place in which the first one begins, also where there
  // are no addresses, so the first is not accessed after the node that makes
  // the last. A version in between may lie anywhere, so an update need not
  // overwrite it.
  int Overwriter(int value) const {
    if (!FirstVersion(value) || LastVersion(value)) return -1;
    return producer[chains[chain_of[value]].versions.back()];
  }
  // May the update of this version write at its address although some version
  // of the same value outlives its own update? Then the versions do not lie at
  // one address one after the other. The first and the last lie at the home
  // address, so the first update and the last write elsewhere.
  bool InPlaceWhileApart(int value, bool host_home) const {
    if (!problem->addresses || host_home) return true;
    const std::vector<int>& versions = chains[chain_of[value]].versions;
    return value != versions.front() && value != versions[versions.size() - 2];
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

// The same model with independent lanes, each at the rate that both have while
// both move. A schedule is no slower in the model itself.
SearchModel WithApartLanes(SearchModel model);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SEARCH_MODEL_H_
