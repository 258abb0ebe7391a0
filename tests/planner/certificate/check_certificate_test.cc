// What the checker makes of good, bad and corrupted certificates.
#include "planner/certificate/check_certificate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/certify/certify_step.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_model.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/tiny_problem.h"

namespace loadline::planner {
namespace {

// A -> a -> C -> c, then D reads a and c; C needs 8 bytes of workspace. In 10
// bytes a must be made again, which takes 10 ns beyond 30.
constexpr char kProblem[] = R"json({"format": "loadline.problem/1",
"name": "again", "values": [{"id": 0, "name": "a", "bytes": 4},
{"id": 1, "name": "b", "bytes": 1}, {"id": 2, "name": "c", "bytes": 1},
{"id": 3, "name": "d", "bytes": 1}], "nodes": [
{"id": 0, "name": "A", "time_ns": 10, "inputs": [], "outputs": [0]},
{"id": 1, "name": "B", "time_ns": 5, "inputs": [0], "outputs": [1]},
{"id": 2, "name": "C", "time_ns": 10, "inputs": [1], "outputs": [2],
 "workspace_bytes": 8},
{"id": 3, "name": "D", "time_ns": 5, "inputs": [2, 0], "outputs": [3]}],
"outputs": [3], "alignment_bytes": 1})json";

// 1 + 1 + 8 bytes at C, so a is away and A runs again:
// budget: 4 keep <= 0; need: keep + rerun >= 1; total: extra >= 10240 rerun.
CertificatePart Again() {
  CertificateTreeNode leaf;
  leaf.rows = {{RowKind::kNeed, {0, 3, 1, 2}, 4 * 10240},
               {RowKind::kBudget, {1}, 10240},
               {RowKind::kTotal, {}, 4}};
  return {{NodeId{2}}, NodeId{-1}, {leaf}};
}

Problem AgainProblem() {
  auto problem = ProblemFromJson(kProblem);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *std::move(problem);
}

int64_t Proven(const CertificatePart& part, int64_t budget_bytes = 10) {
  const auto step_ns = CertifiedStepNs(AgainProblem(), budget_bytes, {{part}});
  return step_ns.ok() ? *step_ns : -1;
}

TEST(CheckCertificate, AddsRowsExactly) {
  EXPECT_EQ(*CertifiedStepNs(AgainProblem(), 10, {}), 30);
  EXPECT_EQ(Proven(Again()), 40);
  EXPECT_EQ(Proven(Again(), 11), 38);  // a quarter of a may stay, in a sum
  EXPECT_EQ(Proven(Again(), 14), 30);
  // Any common factor of the multipliers will do.
  CertificatePart part = Again();
  for (CertificateRow& row : part.tree[0].rows) row.multiplier *= 1'000'003;
  EXPECT_EQ(Proven(part), 40);
}

TEST(CheckCertificate, ProvesLessWithOtherMultipliers) {
  for (size_t row = 0; row < 3; ++row) {
    CertificatePart part = Again();
    int64_t& multiplier = part.tree[0].rows[row].multiplier;
    const int64_t right = multiplier;
    for (int64_t wrong : {right / 3, right * 4 / 5, right * 5 / 4, right * 3}) {
      multiplier = wrong;
      EXPECT_LE(Proven(part), 40) << row;
    }
    multiplier = 0;
    EXPECT_EQ(Proven(part), 30) << row;
    multiplier = -1;
    EXPECT_EQ(Proven(part), -1) << row;
    multiplier = INT64_MAX;
    EXPECT_LE(Proven(part), 40) << row;
  }
}

CertificateTreeNode Branch(ColumnKind kind, CertificateArguments arguments) {
  CertificateTreeNode node;
  node.branch = true;
  node.column = {kind, arguments};
  return node;
}

TEST(CheckCertificate, TakesTheLeastOfATreesLeaves) {
  const CertificateTreeNode leaf = Again().tree[0];
  CertificatePart part = Again();
  part.tree = {Branch(ColumnKind::kKeep, {0, 1}), leaf, leaf};
  EXPECT_EQ(Proven(part), 40);
  // Without a, A runs again; with a, there is no plan of 13 bytes.
  part.tree[1].rows = {{RowKind::kNeed, {0, 3, 1, 2}, 10240},
                       {RowKind::kTotal, {}, 1}};
  part.tree[2].rows = {{RowKind::kBudget, {1}, 1}};
  EXPECT_EQ(Proven(part, 11), 40);
  EXPECT_EQ(Proven(part, 13), 40);
  EXPECT_EQ(Proven(part, 14), 30);
  std::swap(part.tree[1], part.tree[2]);
  EXPECT_EQ(Proven(part, 13), 30);
  part.tree[1].rows.clear();
  EXPECT_EQ(Proven(part), 30);
  part.tree = {Branch(ColumnKind::kKeep, {0, 1}), leaf};
  EXPECT_EQ(Proven(part), -1);
  part.tree = {Branch(ColumnKind::kKeep, {0, 1}), leaf, leaf, leaf};
  EXPECT_EQ(Proven(part), -1);
  part.tree = {};
  EXPECT_EQ(Proven(part), -1);
  part.tree = {Branch(ColumnKind::kKeep, {0, 77}), leaf, leaf};
  EXPECT_EQ(Proven(part), -1);
  for (const CertificateColumn& none :
       std::vector<CertificateColumn>{{ColumnKind::kKeep, {0, 0}},
                                      {ColumnKind::kExtra, {}},
                                      {ColumnKind::kEncoded, {0, 0, 1}},
                                      {ColumnKind::kHome, {0}},
                                      {ColumnKind::kRerun, {4, 1}},
                                      {ColumnKind::kRerun, {-1, 1}}}) {
    part.tree = {Branch(none.kind, none.arguments), leaf, leaf};
    EXPECT_EQ(Proven(part), -1);
  }
  part.tree.assign(100'000, Branch(ColumnKind::kKeep, {0, 1}));
  EXPECT_EQ(Proven(part), -1);
}

// Where A may not run again, a goes out and comes back: two overheads.
TEST(CheckCertificate, CountsTheOverheadOfCopies) {
  Problem problem = AgainProblem();
  problem.nodes[0].recompute = false;
  problem.values[0].offload = true;
  problem.machine.emplace();
  problem.machine->host_bytes = 100;
  problem.machine->d2h = problem.machine->h2d = {1e15, 0};
  const auto proven = [&](int64_t overhead_ns) {
    problem.machine->copy_overhead_ns = overhead_ns;
    CertificateTreeNode leaf;
    leaf.rows = {{RowKind::kNeed, {0, 3, 1, 2}, 8 * 7168},
                 {RowKind::kBudget, {1}, 2 * 7168},
                 {RowKind::kBack, {0, 1}, 4 * 7168},
                 {RowKind::kTotal, {}, 4}};
    const auto step_ns =
        CertifiedStepNs(problem, 10, {{{{NodeId{2}}, NodeId{-1}, {leaf}}}});
    return step_ns.ok() ? *step_ns : -1;
  };
  EXPECT_EQ(proven(7), 30 + 2 * 7);
  EXPECT_EQ(proven(100), 30 + 2 * 7);  // the multipliers are for 7 ns
  EXPECT_EQ(proven(0), 30);
  EXPECT_EQ(proven(INT64_MAX), 30 + 2 * 7);
}

// With 3 bytes of alignment, 3 + 3 + 9 bytes at C and 6 of a.
TEST(CheckCertificate, RoundsBytesUpToTheAlignment) {
  Problem problem = AgainProblem();
  CertificateTreeNode leaf;
  leaf.rows = {{RowKind::kNeed, {0, 3, 1, 2}, 6 * 10240},
               {RowKind::kBudget, {1}, 10240},
               {RowKind::kTotal, {}, 6}};
  const Certificate certificate = {{{{NodeId{2}}, NodeId{-1}, {leaf}}}};
  problem.alignment_bytes = 3;
  EXPECT_EQ(*CertifiedStepNs(problem, 15, certificate), 40);
  EXPECT_EQ(*CertifiedStepNs(problem, 21, certificate), 30);
  problem.alignment_bytes = 1;
  EXPECT_EQ(*CertifiedStepNs(problem, 15, certificate), 30);
}

// Where A may not run again, a is on the host when C starts. Copying it out
// takes as long as C's start is late, and C starts within the step.
TEST(CheckCertificate, TakesNoCutForLaterThanTheStep) {
  Problem problem = AgainProblem();
  problem.nodes[0].recompute = false;
  problem.values[0].offload = true;
  problem.machine.emplace();
  problem.machine->host_bytes = 100;
  problem.machine->h2d = {1e15, 0};
  for (const int64_t out_ns :
       {int64_t{20}, int64_t{30}, int64_t{50}, int64_t{8'000'000'000}}) {
    problem.machine->d2h = {4e9 / static_cast<double>(out_ns), 0};
    CertificateTreeNode leaf;
    leaf.rows = {{RowKind::kNeed, {0, 3, 1, 2}, 1024 * out_ns},
                 {RowKind::kBudget, {1}, 256 * out_ns},
                 {RowKind::kBack, {0, 1}, 1024 * out_ns},
                 {RowKind::kOutsBefore, {1}, 1}};
    EXPECT_EQ(
        *CertifiedStepNs(problem, 10, {{{{NodeId{2}}, NodeId{-1}, {leaf}}}}),
        std::max<int64_t>(30, out_ns));
  }
}

TEST(CheckCertificate, AddsPartsThatFollowOneAnother) {
  const Problem problem = AgainProblem();
  CertificatePart first = Again();
  first.until = NodeId{3};
  const auto proven = [&](std::vector<CertificatePart> parts) {
    const auto step_ns = CertifiedStepNs(problem, 10, {std::move(parts)});
    return step_ns.ok() ? *step_ns : -1;
  };
  CertificatePart last = Again();
  last.cuts = {NodeId{3}};
  last.tree[0].rows.clear();
  EXPECT_EQ(proven({first, last}), 40);
  EXPECT_EQ(proven({first, first}), -1);   // the same time twice
  EXPECT_EQ(proven({Again(), last}), -1);  // the first reaches the end
  EXPECT_EQ(proven({last, Again()}), -1);
}

// Random changes of real certificates.
class CertificateCorrupter {
 public:
  explicit CertificateCorrupter(uint64_t seed) : random_(seed) {}

  void Corrupt(const Problem& problem, Certificate& certificate) {
    const int64_t changes = random_.In(1, 3);
    for (int64_t i = 0; i < changes; ++i) Change(problem, certificate);
  }

 private:
  template <typename T>
  T& Any(std::vector<T>& list) {
    return list[random_.In(0, static_cast<int64_t>(list.size()) - 1)];
  }

  void Change(const Problem& problem, Certificate& certificate) {
    CertificatePart& part = Any(certificate.parts);
    const auto node = [&] {
      return NodeId(static_cast<int32_t>(
          random_.In(0, static_cast<int64_t>(problem.nodes.size()) - 1)));
    };
    CertificateTreeNode& of = Any(part.tree);
    switch (random_.In(0, 9)) {
      case 0:
        Any(part.cuts) = node();
        return;
      case 1:
        part.cuts.push_back(node());
        return;
      case 2:
        part.until = node();
        return;
      case 3:
        of.column.arguments[random_.In(0, 2)] =
            static_cast<int32_t>(random_.In(0, 5));
        return;
      case 4:
        of.column.kind = static_cast<ColumnKind>(random_.In(0, 12));
        return;
      case 5:
        of.branch = !of.branch;
        return;
      case 6:
        certificate.parts.push_back(part);
        return;
      default:
        if (of.rows.empty()) return;
        ChangeRow(Any(of.rows));
    }
  }

  void ChangeRow(CertificateRow& row) {
    switch (random_.In(0, 5)) {
      case 0:
        row.kind = static_cast<RowKind>(
            random_.In(0, static_cast<int64_t>(RowKinds().size()) - 1));
        return;
      case 1:
        row.arguments[random_.In(0, 3)] =
            static_cast<int32_t>(random_.In(0, 5));
        return;
      case 2:
        row.multiplier = INT64_MAX - row.multiplier;
        return;
      case 3:
        row.multiplier = 0;
        return;
      default:
        row.multiplier = std::min(row.multiplier, INT64_MAX / 2);
        row.multiplier += random_.In(0, row.multiplier) - row.multiplier / 3;
    }
  }

  TestRandom random_;
};

// A certificate of a tiny problem that has at least one part.
std::optional<CertifiedBound> CertifiedTiny(const Problem& problem,
                                            int64_t budget_bytes) {
  const SearchModel model = MakeSearchModel(
      problem, {.permissions = {.lossy = true, .inexact = true}});
  StepBoundOptions options;
  options.budget_bytes = budget_bytes;
  options.work_limit = 2'000;
  CertifiedBound certified = CertifyStep(problem, BoundStepAt(model, options),
                                         {.budget_bytes = budget_bytes});
  if (certified.certificate.parts.empty()) return std::nullopt;
  return certified;
}

TEST(CheckCertificate, LetsNoCorruptedCertificateProveMoreThanTheOptimum) {
  int certificates = 0;
  int corrupted = 0;
  int refused = 0;
  int changed = 0;
  for (uint64_t seed = 1; corrupted < 1000 && seed < 2000; ++seed) {
    const Problem problem = TinyProblem(seed, {.codecs = seed % 3 == 1,
                                               .copies = seed % 3 == 2,
                                               .versions = seed % 2 == 0});
    const int64_t budget_bytes = CertifiedPeakBytes(problem) + 1;
    const auto certified = CertifiedTiny(problem, budget_bytes);
    if (!certified) continue;
    const Oracle oracle = FindLeastStep(problem, budget_bytes, 20'000);
    if (oracle.gave_up || !oracle.step_ns) continue;
    ++certificates;
    CertificateCorrupter corrupter(seed);
    for (int i = 0; i < 40; ++i, ++corrupted) {
      Certificate certificate = certified->certificate;
      corrupter.Corrupt(problem, certificate);
      const auto proven = CertifiedStepNs(problem, budget_bytes, certificate);
      refused += !proven.ok();
      changed += !proven.ok() || *proven != certified->step_ns;
      if (!proven.ok()) continue;
      EXPECT_LE(*proven, std::llround(*oracle.step_ns)) << seed;
    }
  }
  std::printf(
      "%d certificates, %d corrupted, of which %d prove something else and %d "
      "are refused\n",
      certificates, corrupted, changed, refused);
  EXPECT_GE(corrupted, 1000);
  EXPECT_GT(changed, corrupted / 2);
  EXPECT_GT(refused, corrupted / 10);
}

// Each multiplier of certificates alone.
TEST(CheckCertificate, ProvesLessWithoutAMultiplierThatTheBoundNeeds) {
  int needed = 0;
  for (uint64_t seed = 1; needed < 100 && seed < 500; ++seed) {
    const Problem problem = TinyProblem(seed, {});
    const int64_t budget_bytes = CertifiedPeakBytes(problem) + 1;
    const auto certified = CertifiedTiny(problem, budget_bytes);
    if (!certified) continue;
    const auto& parts = certified->certificate.parts;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (size_t t = 0; t < parts[p].tree.size(); ++t) {
        for (size_t r = 0; r < parts[p].tree[t].rows.size(); ++r) {
          Certificate bad = certified->certificate;
          bad.parts[p].tree[t].rows[r].multiplier /= 3;
          const auto proven = CertifiedStepNs(problem, budget_bytes, bad);
          ASSERT_TRUE(proven.ok()) << proven.status();
          needed += *proven < certified->step_ns;
        }
      }
    }
  }
  EXPECT_GE(needed, 100);
}

}  // namespace
}  // namespace loadline::planner
