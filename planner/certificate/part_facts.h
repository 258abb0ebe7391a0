// The epochs of one part of a certificate: epoch i lasts from the first run of
// cut i to that of cut i + 1, epoch 0 is before the first cut, and the last one
// ends at the first run of `until` or at the end of the training step.
#ifndef LOADLINE_PLANNER_CERTIFICATE_PART_FACTS_H_
#define LOADLINE_PLANNER_CERTIFICATE_PART_FACTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/certificate/problem_facts.h"
#include "planner/problem/certificate.h"

namespace loadline::planner {

// Has a node first run by some moment?
enum class Ran { kNo, kYes, kUnknown };

class PartFacts {
 public:
  // Errors: a cut that is no ancestor of the next, or of `until`; no cut;
  // copies where the part does not reach the end.
  static absl::StatusOr<PartFacts> Make(const ProblemFacts& problem,
                                        const CertificatePart& part);

  const ProblemFacts& problem() const { return *problem_; }
  int cuts() const { return static_cast<int>(cuts_.size()); }
  int cut(int i) const { return cuts_[i - 1]; }  // i from 1
  bool to_end() const { return until_ < 0; }

  // Before cut i first runs; of the cut itself: no.
  Ran RanBefore(int node, int i) const { return ran_[i - 1][node]; }
  // Before epoch i - 1 has ended, and, if the node is cut i, by its own run;
  // i = cuts() + 1: by the end of the part.
  Ran RanWithin(int node, int i) const;
  // A value that is no input is made by its producer's first run.
  Ran MadeBefore(int value, int i) const;
  // The node's first run lies in an epoch of [First, Last].
  int First(int node) const { return first_[node]; }
  int Last(int node) const { return last_[node]; }

 private:
  explicit PartFacts(const ProblemFacts& problem) : problem_(&problem) {}
  void Settle();

  const ProblemFacts* problem_;
  std::vector<int> cuts_;
  int until_ = -1;
  std::vector<std::vector<Ran>> ran_;  // by cut, by node
  std::vector<char> ends_;             // by node: by the end of the part
  std::vector<int> first_, last_;      // by node
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_PART_FACTS_H_
