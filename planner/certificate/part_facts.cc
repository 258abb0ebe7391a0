// Tested in tests/planner/certificate/rows_test.cc.
#include "planner/certificate/part_facts.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace loadline::planner {
namespace {

// By node: can it be reached from `node` (which is left out)?
std::vector<char> Closure(const std::vector<std::vector<int>>& edges,
                          int node) {
  std::vector<char> seen(edges.size(), 0);
  std::vector<int> open = edges[node];
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (seen[n]) continue;
    seen[n] = 1;
    open.insert(open.end(), edges[n].begin(), edges[n].end());
  }
  return seen;
}

}  // namespace

absl::StatusOr<PartFacts> PartFacts::Make(const ProblemFacts& problem,
                                          const CertificatePart& part) {
  PartFacts facts(problem);
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("certificate: ", what));
  };
  if (part.cuts.empty()) return bad("a part has no cuts");
  facts.until_ = static_cast<int>(part.until);
  for (NodeId cut : part.cuts) {
    if (Index(cut) >= problem.problem.nodes.size()) {
      return bad("a cut is no node");
    }
    facts.cuts_.push_back(static_cast<int>(cut));
  }
  if (facts.until_ >= problem.nodes) return bad("`until` is no node");
  if (!facts.to_end() && problem.copies) {
    return bad("a part must reach the end where values may be copied");
  }
  for (int i = 1; i <= facts.cuts(); ++i) {
    const std::vector<char> earlier = Closure(problem.before, facts.cut(i));
    const std::vector<char> later = Closure(problem.after, facts.cut(i));
    const int next = i < facts.cuts() ? facts.cut(i + 1) : facts.until_;
    if (next >= 0 && !later[next]) {
      return bad(absl::StrCat("node ", problem.problem.nodes[facts.cut(i)].name,
                              " is a cut before node ",
                              problem.problem.nodes[next].name,
                              ", which may run first"));
    }
    std::vector<Ran> ran(problem.nodes, Ran::kUnknown);
    for (int n = 0; n < problem.nodes; ++n) {
      if (earlier[n]) ran[n] = Ran::kYes;
      if (later[n] || n == facts.cut(i)) ran[n] = Ran::kNo;
    }
    facts.ran_.push_back(std::move(ran));
  }
  facts.Settle();
  return facts;
}

void PartFacts::Settle() {
  if (!to_end()) {
    ends_ = Closure(problem_->before, until_);
    ends_[until_] = 1;
  }
  first_.assign(problem_->nodes, 0);
  last_.assign(problem_->nodes, cuts());
  for (int i = cuts(); i >= 1; --i) {
    for (int n = 0; n < problem_->nodes; ++n) {
      if (ran_[i - 1][n] == Ran::kYes) last_[n] = i - 1;
      if (ran_[i - 1][n] == Ran::kNo) first_[n] = std::max(first_[n], i);
    }
  }
}

Ran PartFacts::RanWithin(int node, int i) const {
  if (i > cuts()) {
    return to_end() || ends_[node] ? Ran::kYes : Ran::kUnknown;
  }
  return node == cut(i) ? Ran::kYes : RanBefore(node, i);
}

Ran PartFacts::MadeBefore(int value, int i) const {
  const int producer = problem_->index.producer[value];
  return producer < 0 ? Ran::kYes : RanBefore(producer, i);
}

}  // namespace loadline::planner
