// Tested in tests/planner/certificate/rows_test.cc and
// certificate_oracle_test.cc.
#include "planner/certificate/problem_facts.h"

#include <algorithm>
#include <cmath>

#include "planner/base/align.h"

namespace loadline::planner {
namespace {

__extension__ using Wide = __int128;

std::vector<int> Distinct(const std::vector<ValueId>& ids) {
  std::vector<int> values;
  for (ValueId id : ids) values.push_back(static_cast<int>(id));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

int64_t AtMost(Wide ticks) {
  constexpr Wide kMost = int64_t{1} << 61;
  return static_cast<int64_t>(std::min(ticks, kMost));
}

// At most the ticks in which so many bytes are copied: the rate is rounded up,
// the quotient down.
int64_t CopyTicks(const Link& link, int64_t bytes) {
  constexpr int kRateBits = 20;
  const Wide rate =
      static_cast<Wide>(std::ceil(std::ldexp(link.bytes_per_s, kRateBits)));
  const Wide moving =
      (static_cast<Wide>(bytes) * 1'000'000'000 * kTicksPerNs / rate) *
          (Wide{1} << kRateBits) +
      ((static_cast<Wide>(bytes) * 1'000'000'000 * kTicksPerNs % rate) *
       (Wide{1} << kRateBits)) /
          rate;
  return AtMost(static_cast<Wide>(link.latency_ns) * kTicksPerNs + moving);
}

int64_t LeastRawBytes(const Value& value) {
  int64_t bytes = value.bytes;
  for (const Codec& codec : value.stash) bytes = std::min(bytes, codec.bytes);
  return bytes;
}

}  // namespace

ProblemFacts::ProblemFacts(const Problem& the_problem)
    : problem(the_problem),
      index(IndexProblem(the_problem)),
      nodes(static_cast<int>(the_problem.nodes.size())),
      values(static_cast<int>(the_problem.values.size())) {
  AddNodes();
  AddValues();
  AddPersistents();
  AddPrecedence();
}

int64_t ProblemFacts::Charged(int64_t raw_bytes) const {
  if (!problem.addresses) return raw_bytes;
  const int64_t alignment = std::max<int64_t>(problem.alignment_bytes, 1);
  return AlignUp(std::min(raw_bytes, INT64_MAX - alignment), alignment);
}

bool ProblemFacts::Reads(int node, int value) const {
  return std::binary_search(reads[node].begin(), reads[node].end(), value);
}

void ProblemFacts::AddNodes() {
  for (const Node& node : problem.nodes) {
    reads.push_back(Distinct(node.inputs));
    makes.push_back(Distinct(node.outputs));
    int64_t ns = node.time_ns;
    int64_t workspace_bytes = node.workspace_bytes;
    for (const Variant& variant : node.variants) {
      ns = std::min(ns, variant.time_ns);
      workspace_bytes = std::min(workspace_bytes, variant.workspace_bytes);
    }
    least_ns.push_back(ns);
    least_workspace_bytes.push_back(Charged(workspace_bytes));
    compute_ns += ns;
  }
}

void ProblemFacts::AddValues() {
  const bool can_copy = problem.machine && problem.machine->CanCopy();
  for (const Value& value : problem.values) {
    bytes.push_back(Charged(value.bytes));
    copyable.push_back(can_copy && value.offload);
    copies = copies || copyable.back();
    const int64_t least = LeastRawBytes(value);
    out_ticks.push_back(can_copy ? CopyTicks(problem.machine->d2h, least) : 0);
    in_ticks.push_back(can_copy ? CopyTicks(problem.machine->h2d, least) : 0);
  }
  if (!can_copy) return;
  copy_overhead_ticks = AtMost(
      static_cast<Wide>(problem.machine->copy_overhead_ns) * kTicksPerNs);
}

void ProblemFacts::AddPersistents() {
  persistent.assign(values, -1);
  for (int first = 0; first < values; ++first) {
    if (!problem.values[first].persistent || index.producer[first] >= 0) {
      continue;
    }
    PersistentFacts facts;
    facts.least_bytes = INT64_MAX;
    facts.out_ticks = facts.in_ticks = INT64_MAX;
    for (ValueId id = ValueId{first}; id != kNoValue;
         id = index.next_version[Index(id)]) {
      const int v = static_cast<int>(id);
      persistent[v] = static_cast<int>(persistents.size());
      facts.versions.push_back(v);
      facts.may_leave = facts.may_leave || copyable[v];
      facts.least_bytes = std::min(facts.least_bytes,
                                   Charged(LeastRawBytes(problem.values[v])));
      facts.out_ticks = std::min(facts.out_ticks, out_ticks[v]);
      facts.in_ticks = std::min(facts.in_ticks, in_ticks[v]);
      for (NodeId reader : index.consumers[v]) {
        facts.readers.push_back(static_cast<int>(reader));
      }
    }
    std::sort(facts.readers.begin(), facts.readers.end());
    facts.readers.erase(std::unique(facts.readers.begin(), facts.readers.end()),
                        facts.readers.end());
    const int last = facts.versions.back();
    facts.last_updater = index.producer[last];
    // Who rests on the host is copied in to be read, and out once updated.
    facts.may_rest_on_host = problem.values[first].offload && problem.machine &&
                             problem.machine->host_bytes > 0 &&
                             (facts.readers.empty() || facts.may_leave) &&
                             (facts.last_updater < 0 || copyable[last]);
    persistents.push_back(std::move(facts));
  }
}

void ProblemFacts::AddPrecedence() {
  before.resize(nodes);
  after.resize(nodes);
  for (int n = 0; n < nodes; ++n) {
    for (int v : reads[n]) {
      if (index.producer[v] >= 0) before[n].push_back(index.producer[v]);
    }
  }
  // The initial buffer and the final one lie at the same offset. If no version
  // can be copied or encoded, the first version has the initial buffer alone,
  // and the node that makes the last version writes the final one: it
  // overwrites the first version, whose readers have run by then.
  for (PersistentFacts& facts : persistents) {
    const int first = facts.versions.front();
    const bool encodable =
        std::any_of(facts.versions.begin(), facts.versions.end(),
                    [&](int v) { return !codecs(v).empty(); });
    if (!problem.addresses || facts.last_updater < 0 || facts.may_leave ||
        encodable || bytes[first] == 0) {
      continue;
    }
    facts.overwritten = true;
    for (NodeId id : index.consumers[first]) {
      const int reader = static_cast<int>(id);
      if (reader != facts.last_updater) {
        before[facts.last_updater].push_back(reader);
      }
    }
  }
  for (int n = 0; n < nodes; ++n) {
    std::sort(before[n].begin(), before[n].end());
    before[n].erase(std::unique(before[n].begin(), before[n].end()),
                    before[n].end());
    for (int p : before[n]) after[p].push_back(n);
  }
}

}  // namespace loadline::planner
