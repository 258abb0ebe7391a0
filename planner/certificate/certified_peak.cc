// Tested in tests/planner/certificate/certified_peak_test.cc.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/certificate/check_certificate.h"
#include "planner/certificate/problem_facts.h"

namespace loadline::planner {
namespace {

class Peak {
 public:
  explicit Peak(const Problem& problem) : problem_(problem), facts_(problem) {
    for (const PersistentFacts& facts : facts_.persistents) {
      int64_t least = INT64_MAX;
      for (int v : facts.versions) {
        least = std::min(least, Bytes(v));
        for (const Codec& codec : problem.values[v].stash) {
          least = std::min(least, codec.bytes);
        }
      }
      always_.push_back(facts.AlwaysOnDevice() ? least : 0);
      all_always_ += always_.back();
    }
  }

  int64_t Least() const {
    int64_t most = std::max(AtStart(), AtEnd());
    for (int n = 0; n < facts_.nodes; ++n) most = std::max(most, During(n));
    return most;
  }

 private:
  int64_t Bytes(int value) const { return problem_.values[value].bytes; }

  // Inputs, outputs and workspace of its leanest variant, and every persistent
  // value that is always on the device; no more outputs lie over inputs than
  // either side of the pairs has bytes.
  int64_t During(int node) const {
    const Node& of = problem_.nodes[node];
    int64_t bytes = of.workspace_bytes;
    for (const Variant& variant : of.variants) {
      bytes = std::min(bytes, variant.workspace_bytes);
    }
    bytes += all_always_;
    std::vector<int> own;  // persistent values, counted by themselves
    for (const std::vector<int>* side :
         {&facts_.reads[node], &facts_.makes[node]}) {
      for (int v : *side) {
        bytes += Bytes(v);
        if (facts_.persistent[v] >= 0) own.push_back(facts_.persistent[v]);
      }
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (int p : own) bytes -= always_[p];
    std::vector<int> over, under;
    for (const auto& [in, out] : of.inplace) {
      under.push_back(static_cast<int>(in));
      over.push_back(static_cast<int>(out));
    }
    return bytes - std::min(Distinct(over), Distinct(under));
  }

  int64_t Distinct(std::vector<int> values) const {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    int64_t bytes = 0;
    for (int v : values) bytes += Bytes(v);
    return bytes;
  }

  bool RestsOnDevice(int persistent) const {
    return !facts_.persistents[persistent].may_rest_on_host;
  }

  // Inputs are on the device from the beginning; one that nothing reads need
  // not be there.
  int64_t AtStart() const {
    int64_t bytes = 0;
    for (int v = 0; v < facts_.values; ++v) {
      if (facts_.index.producer[v] >= 0) continue;
      const int p = facts_.persistent[v];
      const bool there =
          p >= 0 ? RestsOnDevice(p) : !facts_.index.consumers[v].empty();
      if (there) bytes += Bytes(v);
    }
    return bytes;
  }

  int64_t AtEnd() const {
    int64_t bytes = 0;
    for (int v = 0; v < facts_.values; ++v) {
      const int p = facts_.persistent[v];
      const bool home = p >= 0 && RestsOnDevice(p) &&
                        facts_.persistents[p].versions.back() == v;
      if (facts_.index.is_output[v] || home) bytes += Bytes(v);
    }
    return bytes;
  }

  const Problem& problem_;
  const ProblemFacts facts_;
  std::vector<int64_t> always_;  // by persistent value: bytes
  int64_t all_always_ = 0;
};

}  // namespace

int64_t CertifiedPeakBytes(const Problem& problem) {
  return Peak(problem).Least();
}

}  // namespace loadline::planner
