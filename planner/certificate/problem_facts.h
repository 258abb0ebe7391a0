// What a certificate's rows rest on: facts about every valid plan, read off the
// problem alone. Shares no code with planner/bound/, on purpose: an error there
// is then found here.
#ifndef LOADLINE_PLANNER_CERTIFICATE_PROBLEM_FACTS_H_
#define LOADLINE_PLANNER_CERTIFICATE_PROBLEM_FACTS_H_

#include <cstdint>
#include <vector>

#include "planner/problem/problem.h"

namespace loadline::planner {

// Exact times: 1,024 ticks are a nanosecond.
inline constexpr int64_t kTicksPerNs = 1024;
// Above this, a plan's least step is not certified beyond one run of each node.
inline constexpr int64_t kMostCertifiedNs = int64_t{1} << 51;

// A persistent value with all its versions.
struct PersistentFacts {
  std::vector<int> versions;      // oldest first
  std::vector<int> readers;       // nodes that read some version, ascending
  int last_updater = -1;          // node that makes the last version; -1: none
  bool may_leave = false;         // some version may be copied to the host
  bool may_rest_on_host = false;  // its home may be on the host
  // The node that makes the last version overwrites the first one for good.
  bool overwritten = false;
  int64_t least_bytes = 0;  // charged, of its smallest representation
  int64_t out_ticks = 0, in_ticks = 0;  // of the quickest copy

  // Some version is always on the device.
  bool AlwaysOnDevice() const { return !may_leave && !may_rest_on_host; }
};

struct ProblemFacts {
  // Requires a valid problem that outlives this.
  explicit ProblemFacts(const Problem& problem);

  const Problem& problem;
  const ProblemIndex index;
  const int nodes;
  const int values;

  std::vector<std::vector<int>> reads, makes;  // by node, without repeats
  std::vector<int64_t> least_ns;               // by node, over its variants
  std::vector<int64_t> least_workspace_bytes;  // by node, charged
  int64_t compute_ns = 0;                      // every node once

  std::vector<int64_t> bytes;   // by value, charged
  std::vector<char> copyable;   // by value: a plan may copy it
  std::vector<int> persistent;  // by value: index below, or -1
  std::vector<PersistentFacts> persistents;
  bool copies = false;  // some value is copyable
  // By value: the quickest copy of any representation, nothing else running.
  std::vector<int64_t> out_ticks, in_ticks;
  int64_t copy_overhead_ticks = 0;  // that a copy adds to the step

  // By node: nodes that first run before (after) it in every valid plan; the
  // direct ones.
  std::vector<std::vector<int>> before, after;

  // Rounded up to the alignment with addresses: buffers that are alive at one
  // moment lie apart at aligned offsets, so their charged bytes fit the charged
  // budget. Without addresses their bytes fit the budget.
  int64_t Charged(int64_t raw_bytes) const;
  const std::vector<Codec>& codecs(int value) const {
    return problem.values[value].stash;
  }
  bool Reads(int node, int value) const;

 private:
  void AddValues();
  void AddPersistents();
  void AddNodes();
  void AddPrecedence();
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_PROBLEM_FACTS_H_
