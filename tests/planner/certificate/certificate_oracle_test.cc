// Certificates against the exact optimum of tiny problems: of all single cuts,
// pairs and triples of comparable cuts and spans, with versions, codecs, copies
// with any factor, pairs in place and nodes that take no time.
// LOADLINE_TINY_PROBLEMS=10000 tries more problems of each kind.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/certificate/check_certificate.h"
#include "planner/certificate/problem_facts.h"
#include "planner/certify/certify_step.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/tiny_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kMostCertificateStates = 20'000;

std::vector<char> NodesAfter(const ProblemFacts& facts, int node) {
  std::vector<char> after(facts.nodes, 0);
  for (int n = node; n < facts.nodes; ++n) {
    if (n != node && !after[n]) continue;
    for (int later : facts.after[n]) after[later] = 1;
  }
  return after;
}

// All sets of at most three nodes of which each is an ancestor of the next.
std::vector<std::vector<int>> CutSets(const ProblemFacts& facts) {
  std::vector<std::vector<int>> sets;
  for (int a = 0; a < facts.nodes; ++a) {
    sets.push_back({a});
    const std::vector<char> after_a = NodesAfter(facts, a);
    for (int b = 0; b < facts.nodes; ++b) {
      if (!after_a[b]) continue;
      sets.push_back({a, b});
      const std::vector<char> after_b = NodesAfter(facts, b);
      for (int c = 0; c < facts.nodes; ++c) {
        if (after_b[c]) sets.push_back({a, b, c});
      }
    }
  }
  return sets;
}

struct CertificateTally {
  int problems = 0;      // the oracle knows the optimum
  int certificates = 0;  // compared with it
  int dearer = 0;        // problems whose optimum is above compute
  int proving = 0;       // of these, some certificate proves more than compute
  int met = 0;           // and some one proves the optimum
  int violations = 0;    // certificates of more than the optimum
};

class Comparison {
 public:
  Comparison(const Problem& problem, int64_t budget_bytes, double optimum_ns,
             CertificateTally& tally)
      : problem_(problem),
        facts_(problem),
        budget_bytes_(budget_bytes),
        optimum_ns_(optimum_ns),
        tally_(tally) {}

  void Run() {
    ++tally_.problems;
    for (const std::vector<int>& cuts : CutSets(facts_)) {
      StepBound bound;
      bound.step_ns = INT64_MAX;  // the most that the rows prove is asked for
      bound.cuts = cuts;
      Check(bound);
      bound.free_nodes = cuts.size() == 1;
      bound.spans = cuts.size() > 1 && !facts_.copies;
      if (bound.free_nodes || bound.spans) Check(bound);
    }
    const bool dearer =
        optimum_ns_ > static_cast<double>(facts_.compute_ns) + 0.5;
    tally_.dearer += dearer;
    tally_.proving += best_ns_ > static_cast<double>(facts_.compute_ns);
    tally_.met += dearer && best_ns_ > optimum_ns_ - 0.6;
  }

 private:
  void Check(const StepBound& bound) {
    const CertifiedBound certified =
        CertifyStep(problem_, bound, {.budget_bytes = budget_bytes_});
    ++tally_.certificates;
    best_ns_ = std::max(best_ns_, static_cast<double>(certified.step_ns));
    const bool above = certified.step_ns > std::llround(optimum_ns_);
    tally_.violations += above;
    if (above && tally_.violations <= 10) {
      ADD_FAILURE() << "cuts " << absl::StrJoin(bound.cuts, " ")
                    << (bound.free_nodes ? " with free nodes" : "")
                    << (bound.spans ? " as spans" : "") << ": "
                    << certified.step_ns << " where the optimum is "
                    << optimum_ns_;
    }
  }

  const Problem& problem_;
  const ProblemFacts facts_;
  const int64_t budget_bytes_;
  const double optimum_ns_;
  CertificateTally& tally_;
  double best_ns_ = 0;
};

void CompareSeeds(const TinyFeatures& features, uint64_t count) {
  if (const char* more = std::getenv("LOADLINE_TINY_PROBLEMS")) {
    count = std::strtoull(more, nullptr, 10);
  }
  CertificateTally tally;
  for (uint64_t seed = 1; seed <= count && tally.violations < 10; ++seed) {
    const Problem problem = TinyProblem(seed, features);
    const int64_t least_bytes = CertifiedPeakBytes(problem);
    constexpr int64_t kMoreBytes[] = {0, 1, 2, 4, 7, 11};
    const int64_t budget_bytes = least_bytes + kMoreBytes[seed % 6];
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Oracle oracle =
        FindLeastStep(problem, budget_bytes, kMostCertificateStates);
    if (oracle.gave_up || !oracle.step_ns) continue;
    Comparison(problem, budget_bytes, *oracle.step_ns, tally).Run();
    if (least_bytes > 0) {
      const Oracle below =
          FindLeastStep(problem, least_bytes - 1, kMostCertificateStates);
      EXPECT_TRUE(below.gave_up || !below.step_ns)
          << "a plan below the certified peak of " << least_bytes;
    }
  }
  std::printf(
      "%d optima, %d above compute; certificates prove more than compute of "
      "%d and the optimum of %d; %d certificates, %d above the optimum\n",
      tally.problems, tally.dearer, tally.proving, tally.met,
      tally.certificates, tally.violations);
  EXPECT_GT(tally.proving, 0);
  EXPECT_EQ(tally.violations, 0);
}

TEST(CertificateOracle, RerunsOnly) { CompareSeeds({}, 100); }
TEST(CertificateOracle, Versions) { CompareSeeds({.versions = true}, 100); }
TEST(CertificateOracle, Codecs) { CompareSeeds({.codecs = true}, 100); }
TEST(CertificateOracle, Copies) { CompareSeeds({.copies = true}, 60); }
TEST(CertificateOracle, CodecsOfVersions) {
  CompareSeeds({.codecs = true, .versions = true}, 200);
}
TEST(CertificateOracle, CopiesOfVersions) {
  CompareSeeds({.copies = true, .versions = true}, 40);
}
TEST(CertificateOracle, CopiesAndCodecs) {
  CompareSeeds({.codecs = true, .copies = true}, 40);
}

}  // namespace
}  // namespace loadline::planner
