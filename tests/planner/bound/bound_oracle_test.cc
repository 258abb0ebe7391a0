// Every program of the bound against the exact optimum of tiny problems: all
// single cuts, pairs and triples of comparable cuts, with versions, codecs and
// copies. LOADLINE_TINY_PROBLEMS=10000 tries more problems of each kind.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/bound/bound_program.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/tiny_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kMostOracleStates = 20'000;

// All sets of at most three nodes of which each is an ancestor of the next.
std::vector<std::vector<int>> CutSets(const SearchModel& model,
                                      const Precedence& precedence) {
  std::vector<std::vector<int>> sets;
  for (int a = 0; a < model.node_count; ++a) {
    sets.push_back({a});
    const std::vector<char> after_a = precedence.Descendants(a);
    for (int b = 0; b < model.node_count; ++b) {
      if (!after_a[b]) continue;
      sets.push_back({a, b});
      const std::vector<char> after_b = precedence.Descendants(b);
      for (int c = 0; c < model.node_count; ++c) {
        if (after_b[c]) sets.push_back({a, b, c});
      }
    }
  }
  return sets;
}

struct OracleTally {
  int problems = 0;    // the oracle knows the optimum
  int programs = 0;    // compared with it
  int met = 0;         // problems of which some program proves the optimum
  int dearer = 0;      // problems whose optimum is above compute
  int violations = 0;  // programs above the optimum
};

class Comparison {
 public:
  Comparison(const Problem& problem, int64_t budget_bytes, OracleTally& tally)
      : model_(MakeSearchModel(problem, true, true)),
        least_(FindLeastCosts(model_)),
        precedence_(model_),
        budget_bytes_(budget_bytes),
        oracle_(FindLeastStep(problem, budget_bytes, kMostOracleStates)),
        tally_(tally) {}

  void Run() {
    if (oracle_.gave_up) return;
    if (!oracle_.step_ns) return;
    ++tally_.problems;
    best_ns_ = 0;
    for (const std::vector<int>& cuts : CutSets(model_, precedence_)) {
      Check({.cuts = cuts});
      if (cuts.size() == 1) Check({.cuts = cuts, .free_nodes = true});
    }
    StepBoundOptions options;
    options.budget_bytes = budget_bytes_;
    const StepBound bound = BoundStepAt(model_, options);
    EXPECT_FALSE(bound.no_plan);
    EXPECT_LE(static_cast<double>(bound.step_ns), *oracle_.step_ns + 0.51);
    const bool dearer =
        *oracle_.step_ns > static_cast<double>(least_.compute_ns) + 0.5;
    tally_.dearer += dearer;
    tally_.met += dearer && best_ns_ > *oracle_.step_ns - 0.5;
  }

 private:
  void Check(BoundQuery query) {
    query.budget_bytes = budget_bytes_;
    query.horizon_ns = 2 * *oracle_.step_ns + 1e4;
    const BoundProgram program =
        MakeBoundProgram(model_, least_, precedence_, query);
    const MipBound bound = SolveMip(program.program, {1'000'000}, kNoLimit);
    ++tally_.programs;
    const double ns = program.offset_ns + bound.cost * program.unit_ns;
    best_ns_ = std::max(best_ns_, ns);
    const bool above =
        bound.infeasible || ns > *oracle_.step_ns * (1 + 1e-6) + 1e-3;
    tally_.violations += above;
    if (above && tally_.violations <= 10) {
      ADD_FAILURE() << "cuts " << absl::StrJoin(query.cuts, " ")
                    << (query.free_nodes ? " with free nodes" : "") << ": "
                    << (bound.infeasible ? "no plan" : absl::StrCat(ns))
                    << " where the optimum is " << *oracle_.step_ns;
    }
  }

  const SearchModel model_;
  const LeastCosts least_;
  const Precedence precedence_;
  const int64_t budget_bytes_;
  const Oracle oracle_;
  OracleTally& tally_;
  double best_ns_ = 0;
};

OracleTally CompareSeeds(const TinyFeatures& features, uint64_t count) {
  if (const char* more = std::getenv("LOADLINE_TINY_PROBLEMS")) {
    count = std::strtoull(more, nullptr, 10);
  }
  OracleTally tally;
  for (uint64_t seed = 1; seed <= count && tally.violations < 10; ++seed) {
    const Problem problem = TinyProblem(seed, features);
    EXPECT_EQ(ValidateProblem(problem), absl::OkStatus()) << seed;
    const int64_t least_bytes =
        BoundPeak(MakeSearchModel(problem, true, true)).bytes;
    constexpr int64_t kMoreBytes[] = {0, 1, 2, 4, 7, 11};
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Comparison(problem, least_bytes + kMoreBytes[seed % 6], tally).Run();
  }
  std::printf(
      "%d optima, %d above compute, of which one program meets %d; %d "
      "programs, %d above the optimum\n",
      tally.problems, tally.dearer, tally.met, tally.programs,
      tally.violations);
  EXPECT_GT(tally.problems, 0);
  EXPECT_EQ(tally.violations, 0);
  return tally;
}

TEST(BoundOracle, RerunsOnly) { CompareSeeds({}, 150); }
TEST(BoundOracle, Versions) { CompareSeeds({.versions = true}, 150); }
TEST(BoundOracle, Codecs) { CompareSeeds({.codecs = true}, 150); }
TEST(BoundOracle, Copies) { CompareSeeds({.copies = true}, 100); }
TEST(BoundOracle, CodecsOfVersions) {
  CompareSeeds({.codecs = true, .versions = true}, 100);
}
TEST(BoundOracle, CopiesOfVersions) {
  CompareSeeds({.copies = true, .versions = true}, 60);
}
TEST(BoundOracle, CopiesAndCodecs) {
  CompareSeeds({.codecs = true, .copies = true}, 60);
}

// Planted problems: each needs one way of freeing memory that a bound once
// denied.
void ExpectLeastStep(const std::string& json, int64_t budget_bytes,
                     double expected_ns) {
  const absl::StatusOr<Problem> problem = ProblemFromJson(json);
  EXPECT_TRUE(problem.ok()) << problem.status();
  const Oracle oracle = FindLeastStep(*problem, budget_bytes, 1'000'000);
  EXPECT_FALSE(oracle.gave_up);
  EXPECT_NEAR(oracle.step_ns.value_or(-1), expected_ns, 1e-6);
  OracleTally tally;
  Comparison(*problem, budget_bytes, tally).Run();
  EXPECT_GT(tally.programs, 0);
}

// A reads p again after U1 has made p1 at another address.
TEST(BoundGadget, AFirstVersionStaysReadableWhileTheSecondLiesElsewhere) {
  ExpectLeastStep(
      R"json({"format": "loadline.problem/1", "name": "c3", "values": [{"id": 0, "name":
"p", "bytes": 1, "persistent": true}, {"id": 1, "name": "x", "bytes": 1},
{"id": 2, "name": "a", "bytes": 10}, {"id": 3, "name": "b", "bytes": 10},
{"id": 4, "name": "c", "bytes": 1}, {"id": 5, "name": "p1", "bytes": 1},
{"id": 6, "name": "m", "bytes": 1}, {"id": 7, "name": "d", "bytes": 1}, {"id":
8, "name": "p2", "bytes": 1}], "nodes": [{"id": 0, "name": "A", "time_ns": 10,
"inputs": [0], "outputs": [2]}, {"id": 1, "name": "B", "time_ns": 1000,
"inputs": [1], "outputs": [3]}, {"id": 2, "name": "C", "time_ns": 10,
"inputs": [2, 3], "outputs": [4]}, {"id": 3, "name": "U1", "time_ns": 10,
"inputs": [0, 4], "outputs": [5], "recompute": false, "inplace": [[0, 5]]},
{"id": 4, "name": "M", "time_ns": 10, "inputs": [4, 5], "outputs": [6],
"workspace_bytes": 11}, {"id": 5, "name": "D", "time_ns": 10, "inputs": [2, 3,
6], "outputs": [7]}, {"id": 6, "name": "U2", "time_ns": 10, "inputs": [5, 7],
"outputs": [8], "recompute": false, "inplace": [[5, 8]]}], "outputs": [7],
"alignment_bytes": 1})json",
      25, 1070);
}

// v is on the device at x1 and x2, encoded while Z runs again in between.
TEST(BoundGadget, AValueIsEncodedDroppedAndDecodedBetweenTwoCuts) {
  ExpectLeastStep(
      R"json({"format": "loadline.problem/1", "name": "codec", "values": [{"id": 0, "name":
"in", "bytes": 0}, {"id": 1, "name": "w", "bytes": 4}, {"id": 2, "name": "z",
"bytes": 1}, {"id": 3, "name": "v", "bytes": 10, "stash": [{"codec": "c",
"bytes": 1, "encode_ns": 10, "decode_ns": 10, "lossless": true}]}, {"id": 4,
"name": "s1", "bytes": 1}, {"id": 5, "name": "y1", "bytes": 1}, {"id": 6,
"name": "s2", "bytes": 1}, {"id": 7, "name": "s3", "bytes": 1}], "nodes":
[{"id": 0, "name": "N", "time_ns": 10, "inputs": [0], "outputs": [1],
"workspace_bytes": 11}, {"id": 1, "name": "Z", "time_ns": 10, "inputs": [1],
"outputs": [2], "workspace_bytes": 11}, {"id": 2, "name": "V", "time_ns":
10000, "inputs": [2], "outputs": [3], "workspace_bytes": 2}, {"id": 3, "name":
"x1", "time_ns": 10, "inputs": [3, 2], "outputs": [4], "workspace_bytes": 5},
{"id": 4, "name": "y", "time_ns": 10, "inputs": [1, 4], "outputs": [5]},
{"id": 5, "name": "x2", "time_ns": 10, "inputs": [3, 5], "outputs": [6],
"workspace_bytes": 5}, {"id": 6, "name": "f", "time_ns": 10, "inputs": [3, 6],
"outputs": [7]}], "outputs": [7], "alignment_bytes": 1, "addresses": false})json",
      17, 10090);
}

// v is on the device at x1 and x2, on the host while Z runs again in between.
TEST(BoundGadget, AValueIsCopiedOutAndBackBetweenTwoCuts) {
  ExpectLeastStep(
      R"json({"format": "loadline.problem/1", "name": "cpy", "values": [{"id": 0, "name":
"in", "bytes": 0, "offload": false}, {"id": 1, "name": "w", "bytes": 4,
"offload": false}, {"id": 2, "name": "z", "bytes": 1, "offload": false},
{"id": 3, "name": "v", "bytes": 10}, {"id": 4, "name": "s1", "bytes": 1,
"offload": false}, {"id": 5, "name": "y0", "bytes": 1, "offload": false},
{"id": 6, "name": "y1", "bytes": 1, "offload": false}, {"id": 7, "name": "y2",
"bytes": 1, "offload": false}, {"id": 8, "name": "s2", "bytes": 1, "offload":
false}, {"id": 9, "name": "s3", "bytes": 1, "offload": false}], "nodes":
[{"id": 0, "name": "N", "time_ns": 8, "inputs": [0], "outputs": [1],
"workspace_bytes": 11}, {"id": 1, "name": "Z", "time_ns": 8, "inputs": [1],
"outputs": [2], "workspace_bytes": 11}, {"id": 2, "name": "V", "time_ns": 8,
"inputs": [2], "outputs": [3], "workspace_bytes": 2, "recompute": false},
{"id": 3, "name": "x1", "time_ns": 8, "inputs": [3, 2], "outputs": [4],
"workspace_bytes": 5}, {"id": 4, "name": "idle", "time_ns": 1024, "inputs":
[4], "outputs": [5]}, {"id": 5, "name": "y", "time_ns": 8, "inputs": [1, 5],
"outputs": [6]}, {"id": 6, "name": "idle2", "time_ns": 1024, "inputs": [6],
"outputs": [7]}, {"id": 7, "name": "x2", "time_ns": 8, "inputs": [3, 7],
"outputs": [8], "workspace_bytes": 5}, {"id": 8, "name": "f", "time_ns": 8,
"inputs": [3, 8], "outputs": [9]}], "outputs": [9], "alignment_bytes": 1,
"addresses": false, "machine": {"format": "loadline.machine/1", "name": "t",
"device_bytes": 1000, "reserved_bytes": 0, "d2h_bytes_per_s": 15625000.0,
"h2d_bytes_per_s": 15625000.0, "copy_latency_ns": 0, "bidirectional": 1.0,
"host_bytes": 1000}})json",
      17, 2112);
}

}  // namespace
}  // namespace loadline::planner
