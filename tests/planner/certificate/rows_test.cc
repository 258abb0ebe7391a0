// Every kind of row, as text, on one small problem: a wrong sign, term, epoch
// or right side shows. Reasons are in docs/certificates.md.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "planner/certificate/check_certificate.h"
#include "planner/certificate/fact_rows.h"
#include "planner/certificate/sum_rows.h"
#include "planner/problem/problem.h"

namespace loadline::planner {
namespace {

// Nodes have capital letters, values small ones. Node A reads values x and w
// and makes a; B makes b of a; C makes c of b, in place; D makes the output d
// of c and a. U updates the persistent value w with d. E and F are apart from
// these: E makes e of x, and F makes f of e.
constexpr char kProblem[] = R"json({"format": "loadline.problem/1",
"name": "rows", "values": [
{"id": 0, "name": "w", "bytes": 100, "persistent": true},
{"id": 1, "name": "x", "bytes": 100},
{"id": 2, "name": "a", "bytes": 100, "stash": [{"codec": "half", "bytes": 50,
 "encode_ns": 3, "decode_ns": 2, "lossless": true}]},
{"id": 3, "name": "b", "bytes": 100}, {"id": 4, "name": "c", "bytes": 100},
{"id": 5, "name": "d", "bytes": 100}, {"id": 6, "name": "w1", "bytes": 100},
{"id": 7, "name": "e", "bytes": 100}, {"id": 8, "name": "f", "bytes": 100}],
"nodes": [
{"id": 0, "name": "A", "time_ns": 10, "inputs": [1, 0], "outputs": [2]},
{"id": 1, "name": "B", "time_ns": 20, "inputs": [2], "outputs": [3]},
{"id": 2, "name": "C", "time_ns": 30, "inputs": [3], "outputs": [4],
 "workspace_bytes": 5, "inplace": [[3, 4]]},
{"id": 3, "name": "D", "time_ns": 40, "inputs": [4, 2], "outputs": [5]},
{"id": 4, "name": "U", "time_ns": 50, "inputs": [0, 5], "outputs": [6],
 "recompute": false, "inplace": [[0, 6]]},
{"id": 5, "name": "E", "time_ns": 60, "inputs": [1], "outputs": [7]},
{"id": 6, "name": "F", "time_ns": 70, "inputs": [7], "outputs": [8]}],
"outputs": [5], "alignment_bytes": 1MACHINE})json";

constexpr char kMachine[] = R"json(, "machine": {"format":
"loadline.machine/1", "name": "m", "device_bytes": 1000, "reserved_bytes": 0,
"d2h_bytes_per_s": 1e9, "h2d_bytes_per_s": 2e9, "copy_latency_ns": 7,
"bidirectional": 0.75, "host_bytes": 10000})json";

enum Nodes { kA, kB, kC, kD, kU, kE, kF };
enum Values { kW, kX, kAValue, kBValue, kCValue, kDValue, kW1, kEValue };

std::string Text(const CertificateColumn& column) {
  static constexpr absl::string_view kOthers[] = {"extra", "start", "staying"};
  const size_t kind = static_cast<size_t>(column.kind);
  const size_t known = ColumnKinds().size();
  if (column.kind == ColumnKind::kExtra) return "extra";
  const absl::string_view name =
      kind < known ? ColumnKinds()[kind].name : kOthers[kind - known];
  const size_t arguments =
      kind < known ? ColumnKinds()[kind].arguments.size() : 1;
  return absl::StrCat(name, "(",
                      absl::StrJoin(column.arguments.begin(),
                                    column.arguments.begin() + arguments, ","),
                      ")");
}

std::string Text(
    const std::vector<std::pair<CertificateColumn, int64_t>>& terms) {
  std::string text;
  for (const auto& [column, factor] : terms) {
    absl::StrAppend(&text, factor < 0 ? "- " : text.empty() ? "" : "+ ");
    if (std::abs(factor) != 1) absl::StrAppend(&text, std::abs(factor), " ");
    absl::StrAppend(&text, Text(column), " ");
  }
  return text;
}

class Rows : public ::testing::Test {
 protected:
  void Use(bool machine, std::vector<NodeId> cuts, NodeId until = NodeId{-1}) {
    const auto read = ProblemFromJson(
        absl::StrReplaceAll(kProblem, {{"MACHINE", machine ? kMachine : ""}}));
    ASSERT_TRUE(read.ok()) << read.status();
    problem_ = *read;
    facts_.emplace(problem_);
    const auto part = PartFacts::Make(*facts_, {std::move(cuts), until, {}});
    ASSERT_TRUE(part.ok()) << part.status();
    part_.emplace(*part);
  }

  // The row as text; "refused" where it does not hold.
  std::string Row(RowKind kind, int a = 0, int b = 0, int c = 0, int d = 0) {
    const CertificateRow row = {kind, {a, b, c, d}, 1};
    if (!CheckArguments(*part_, row).ok()) return "refused";
    absl::StatusOr<LinearRow> made;
    if (IsSumRow(kind)) {
      made = SumRows(*part_, 400, mentioned_).Row(row);
    } else {
      made = FactRow(*part_, row);
    }
    if (!made.ok()) return "refused";
    return absl::StrCat(Text(made->terms), ">= ", made->rhs);
  }

  Problem problem_;
  std::optional<ProblemFacts> facts_;
  std::optional<PartFacts> part_;
  std::vector<CertificateColumn> mentioned_;
};

TEST_F(Rows, SayWhereValuesAre) {
  Use(false, {NodeId{kC}, NodeId{kD}});
  EXPECT_EQ(Row(RowKind::kNeed, kAValue, kD, 1, 2),
            "keep(2,1) + rerun(0,1) + decoded(2,0,1) >= 1");
  EXPECT_EQ(Row(RowKind::kNeed, kEValue, kF, 1, 2),
            "keep(7,1) + rerun(5,1) - ran(5,1) - ran(6,2) + ran(6,1) >= -1");
  EXPECT_EQ(Row(RowKind::kNeed, kEValue, kF, 1, 3),
            "keep(7,1) + rerun(5,1) + rerun(5,2) - ran(5,1) + ran(6,1) >= 0");
  EXPECT_EQ(Row(RowKind::kNeedOutput, kDValue, 2),
            "keep(5,2) + rerun(3,2) >= 0");
  EXPECT_EQ(Row(RowKind::kCarry, kAValue, 1),
            "keep(2,1) + rerun(0,1) + decoded(2,0,1) - keep(2,2) >= 0");
  EXPECT_EQ(Row(RowKind::kCarry, kEValue, 1),
            "keep(7,1) + rerun(5,1) - keep(7,2) - ran(5,1) >= -1");
  EXPECT_EQ(Row(RowKind::kInput, kB, kAValue, 1),
            "- rerun(1,1) + keep(2,1) + rerun(0,1) + decoded(2,0,1) >= 0");
  EXPECT_EQ(Row(RowKind::kRan, kB, 1), "- rerun(1,1) >= -1");
  EXPECT_EQ(Row(RowKind::kRan, kD, 1), "- rerun(3,1) >= 0");
  EXPECT_EQ(Row(RowKind::kRan, kE, 1), "- rerun(5,1) + ran(5,1) >= 0");
  EXPECT_EQ(Row(RowKind::kOrder, kF, kE, 1), "ran(5,1) - ran(6,1) >= 0");
}

TEST_F(Rows, SayWhatCodecsAndPlacesAllow) {
  Use(false, {NodeId{kC}, NodeId{kD}});
  EXPECT_EQ(Row(RowKind::kDecode, kAValue, 0, 1),
            "encoded(2,0,1) - decoded(2,0,1) >= 0");
  EXPECT_EQ(Row(RowKind::kEncode, kAValue, 0, 1),
            "once(2,0) - encoded(2,0,1) >= 0");
  EXPECT_EQ(Row(RowKind::kEncodedCarry, kAValue, 0, 1),
            "keep(2,1) + rerun(0,1) + decoded(2,0,1) + encoded(2,0,1) "
            "- encoded(2,0,2) >= 0");
  EXPECT_EQ(Row(RowKind::kInputOnce, kBValue, 1),
            "- keep(3,1) - taken(3,4,1) >= -1");
  EXPECT_EQ(Row(RowKind::kOutputOnce, kCValue, 1), "- taken(3,4,1) >= -1");
  Use(false, {NodeId{kU}});
  EXPECT_EQ(Row(RowKind::kGone, kA, 1), "- rerun(0,1) >= 0");
  EXPECT_EQ(Row(RowKind::kGone, kB, 1), "refused");
}

TEST_F(Rows, AreRefusedWhereTheyDoNotHold) {
  Use(false, {NodeId{kC}, NodeId{kD}});
  const std::string refused = "refused";
  EXPECT_EQ(Row(RowKind::kNeed, kX, kD, 1, 2), refused);
  EXPECT_EQ(Row(RowKind::kNeed, kBValue, kC, 1, 2), refused);  // overwritten
  EXPECT_EQ(Row(RowKind::kNeed, kAValue, kD, 2, 2), refused);
  EXPECT_EQ(Row(RowKind::kNeed, kW, kA, 1, 2), refused);  // persistent
  EXPECT_EQ(Row(RowKind::kNeed, kAValue, kD, 0, 2), refused);
  EXPECT_EQ(Row(RowKind::kNeed, kAValue, kD, 1, 4), refused);
  EXPECT_EQ(Row(RowKind::kNeedOutput, kAValue, 1), refused);
  EXPECT_EQ(Row(RowKind::kCarry, kAValue, 2), refused);
  EXPECT_EQ(Row(RowKind::kInput, kB, kX, 1), refused);
  EXPECT_EQ(Row(RowKind::kInput, kA, kW, 1), refused);
  EXPECT_EQ(Row(RowKind::kOrder, kE, kF, 1), refused);
  EXPECT_EQ(Row(RowKind::kOrder, kF, kA, 1), refused);
  EXPECT_EQ(Row(RowKind::kInputOnce, kAValue, 1), refused);
  EXPECT_EQ(Row(RowKind::kGone, kA, 1), refused);
  EXPECT_EQ(Row(RowKind::kDecode, kAValue, 1, 1), refused);
  EXPECT_EQ(Row(RowKind::kDecode, kBValue, 0, 1), refused);
  EXPECT_EQ(Row(RowKind::kBack, kAValue, 1), refused);  // no machine
  EXPECT_EQ(Row(RowKind::kHomeEnd, kW), refused);       // it never leaves
  EXPECT_EQ(Row(RowKind::kInsFrom, 1), refused);
  EXPECT_EQ(Row(RowKind::kRerunFits, kB, 2), refused);
  Use(true, {NodeId{kC}, NodeId{kD}});
  EXPECT_EQ(Row(RowKind::kEncodedCarry, kAValue, 0, 1), refused);
  EXPECT_EQ(Row(RowKind::kHomeEnd, kX), refused);
  EXPECT_EQ(Row(RowKind::kHomeEnd, kW1), refused);
  EXPECT_EQ(Row(RowKind::kHomeNeed, kW, kB, 1, 2), refused);
  EXPECT_EQ(Row(RowKind::kHomeInput, kW, kB, 1), refused);
}

TEST_F(Rows, OfPartsThatEndEarlyCountNothingAfterwards) {
  Use(false, {NodeId{kC}}, NodeId{kD});
  mentioned_ = {{ColumnKind::kOnce, {kAValue, 0}}};
  EXPECT_EQ(Row(RowKind::kNeedOutput, kDValue, 1), "refused");
  // U and F may run after the end.
  EXPECT_EQ(Row(RowKind::kNeed, kDValue, kU, 1, 2),
            "keep(5,1) + rerun(3,1) >= -1");
  EXPECT_EQ(Row(RowKind::kNeed, kEValue, kF, 1, 2),
            "keep(7,1) + rerun(5,1) - ran(5,1) + ran(6,1) >= -1");
  EXPECT_EQ(Row(RowKind::kNeed, kAValue, kD, 1, 2),
            "keep(2,1) + rerun(0,1) + decoded(2,0,1) >= 1");
  EXPECT_EQ(Row(RowKind::kTotal), "extra >= 0");
}

TEST_F(Rows, FollowCopiesAndHomes) {
  Use(true, {NodeId{kC}, NodeId{kD}});
  EXPECT_EQ(Row(RowKind::kBack, kAValue, 1), "host(2,1) - in(2,1) >= 0");
  EXPECT_EQ(Row(RowKind::kOutStays, kAValue, 1), "host(2,2) - host(2,1) >= 0");
  EXPECT_EQ(Row(RowKind::kCarry, kBValue, 1),
            "keep(3,1) + rerun(1,1) + in(3,1) - keep(3,2) >= 0");
  EXPECT_EQ(Row(RowKind::kHomeCarry, kW, 0),
            "- home(0) + home_in(0,0) - home_keep(0,1) >= -1");
  EXPECT_EQ(Row(RowKind::kHomeCarry, kW, 1),
            "home_keep(0,1) + home_in(0,1) - home_keep(0,2) >= 0");
  EXPECT_EQ(Row(RowKind::kHomeEnd, kW),
            "home_keep(0,2) + home_in(0,2) + home(0) >= 1");
  EXPECT_EQ(Row(RowKind::kHomeOut, kW, 1),
            "home_out(0,1) + home_keep(0,1) + home(0) >= 1");
  EXPECT_EQ(Row(RowKind::kHomeOutStays, kW, 2),
            "home_out(0,3) - home_out(0,2) >= 0");
  EXPECT_EQ(Row(RowKind::kHomeReturn, kW), "home_out(0,3) - home(0) >= 0");
  EXPECT_EQ(Row(RowKind::kHomeNeed, kW, kU, 2, 3),
            "home_keep(0,2) + home_in(0,2) >= 1");
  EXPECT_EQ(Row(RowKind::kHomeNeed, kW, kA, 0, 1),
            "- home(0) + home_in(0,0) >= 0");
  EXPECT_EQ(Row(RowKind::kHomeInput, kW, kA, 1),
            "- rerun(0,1) + home_keep(0,1) + home_in(0,1) >= 0");
}

// Once the last update has run, a home on the host has an old version only.
TEST_F(Rows, FindAnUpdatedValueElsewhereThanAtItsHome) {
  std::string json =
      absl::StrReplaceAll(kProblem, {{"MACHINE", kMachine},
                                     {"\"inputs\": [7], \"outputs\": [8]",
                                      "\"inputs\": [7, 6], \"outputs\": [8]"}});
  problem_ = *ProblemFromJson(json);
  facts_.emplace(problem_);
  part_.emplace(*PartFacts::Make(*facts_, {{NodeId{kF}}, NodeId{-1}, {}}));
  EXPECT_EQ(Row(RowKind::kHomeOut, kW, 1),
            "home_out(0,1) + home_keep(0,1) >= 1");
}

TEST_F(Rows, AddBytes) {
  Use(false, {NodeId{kC}, NodeId{kD}});
  mentioned_ = {
      {ColumnKind::kKeep, {kAValue, 1}},      {ColumnKind::kKeep, {kBValue, 1}},
      {ColumnKind::kKeep, {kCValue, 1}},      {ColumnKind::kKeep, {kX, 2}},
      {ColumnKind::kKeep, {kAValue, 2}},      {ColumnKind::kKeep, {kBValue, 2}},
      {ColumnKind::kKeep, {kCValue, 2}},      {ColumnKind::kKeep, {kEValue, 2}},
      {ColumnKind::kEncoded, {kAValue, 0, 1}}};
  // 400 less 5 of workspace, b, c and w. What C reads or makes counts already.
  EXPECT_EQ(Row(RowKind::kBudget, 1),
            "- 100 keep(2,1) - 50 encoded(2,0,1) + 100 taken(3,4,1) >= -95");
  // 400 less a, c, d and w.
  EXPECT_EQ(Row(RowKind::kBudget, 2),
            "- 100 keep(1,2) - 100 keep(3,2) - 100 keep(7,2) >= 0");
  // B needs a and b, beside w; b is its own.
  EXPECT_EQ(Row(RowKind::kRerunFits, kB, 1),
            "- 200 rerun(1,1) - staying(1) + 100 keep(3,2) - 100 rerun(1,1) "
            ">= -300");
  // C may write c over b.
  EXPECT_EQ(Row(RowKind::kRerunFits, kC, 1),
            "- 105 rerun(2,1) - staying(1) + 100 keep(3,2) - 100 rerun(1,1) "
            ">= -300");
  // a may have been encoded in between, c and e are not surely made before C.
  EXPECT_EQ(Text(SumRows(*part_, 400, mentioned_).Staying(1)),
            "100 keep(1,2) + 100 keep(3,2) - 100 rerun(1,1) ");
}

TEST_F(Rows, AddBytesOfValuesThatMayLeave) {
  Use(true, {NodeId{kC}, NodeId{kD}});
  mentioned_ = {{ColumnKind::kHomeKeep, {kW, 1}},
                {ColumnKind::kKeep, {kBValue, 2}}};
  EXPECT_EQ(Row(RowKind::kBudget, 1),
            "- 100 home_keep(0,1) + 100 taken(3,4,1) >= -195");
  EXPECT_EQ(Row(RowKind::kRerunFits, kA, 1),
            "- 300 rerun(0,1) - staying(1) >= -400");
  EXPECT_EQ(Text(SumRows(*part_, 400, mentioned_).Staying(1)), "");
  Use(true, {NodeId{kA}});
  // 400 less x, a and w, which A reads.
  EXPECT_EQ(Row(RowKind::kBudget, 1), ">= -100");
}

TEST_F(Rows, AddTimes) {
  Use(true, {NodeId{kC}, NodeId{kD}});
  mentioned_ = {{ColumnKind::kHost, {kAValue, 1}},
                {ColumnKind::kHost, {kAValue, 2}},
                {ColumnKind::kIn, {kAValue, 1}},
                {ColumnKind::kHome, {kW}},
                {ColumnKind::kHomeIn, {kW, 0}},
                {ColumnKind::kHomeOut, {kW, 3}},
                {ColumnKind::kRerun, {kA, 1}},
                {ColumnKind::kDecoded, {kAValue, 0, 2}},
                {ColumnKind::kOnce, {kAValue, 0}}};
  EXPECT_EQ(Row(RowKind::kTotal),
            "extra - 10240 rerun(0,1) - 2048 decoded(2,0,2) - 3072 once(2,0) "
            ">= 0");
  EXPECT_EQ(Row(RowKind::kCompute, 0), "start(1) >= 0");
  EXPECT_EQ(Row(RowKind::kCompute, 1),
            "- start(1) + start(2) - 10240 rerun(0,1) >= 0");
  EXPECT_EQ(Row(RowKind::kCompute, 2),
            "- start(2) + extra - 2048 decoded(2,0,2) >= -286720");
  // a in its 50 encoded bytes: 57 ns out, 32 in; w: 107 and 57.
  EXPECT_EQ(Row(RowKind::kOutsBefore, 1), "start(1) - 58368 host(2,1) >= 0");
  EXPECT_EQ(Row(RowKind::kOutsBefore, 3),
            "extra - 58368 host(2,2) - 109568 home_out(0,3) >= -286720");
  EXPECT_EQ(Row(RowKind::kOutsAfter, 2),
            "- start(2) + extra - 109568 home(0) >= -286720");
  EXPECT_EQ(Row(RowKind::kInsFrom, 0),
            "extra - 58368 home_in(0,0) - 32768 in(2,1) >= -286720");
  EXPECT_EQ(Row(RowKind::kInsFrom, 2), "- start(2) + extra >= -286720");
  EXPECT_EQ(Row(RowKind::kInsBefore, 1), "start(1) - 58368 home(0) >= 0");
  // Without the latencies, at 1.5 times the rate of one lane.
  EXPECT_EQ(Row(RowKind::kBothLanes),
            "extra - 34133 host(2,2) - 68266 home_out(0,3) - 34133 "
            "home_in(0,0) - 17066 in(2,1) >= -286720");
  std::vector<std::vector<int64_t>> runs;
  const SumRows sums(*part_, 400, mentioned_);
  for (const SumRows::FirstRuns& run : sums.first_runs()) {
    runs.push_back({run.first, run.last, run.ticks / kTicksPerNs});
  }
  // A and B before C; E and F anywhere; C; D and U.
  EXPECT_EQ(runs, (std::vector<std::vector<int64_t>>{
                      {0, 0, 30}, {0, 2, 130}, {1, 1, 30}, {2, 2, 90}}));
}

TEST_F(Rows, NeedCutsInOrder) {
  Use(false, {NodeId{kC}});
  const auto make = [&](std::vector<NodeId> cuts, int until) {
    return PartFacts::Make(*facts_, {std::move(cuts), NodeId{until}, {}}).ok();
  };
  EXPECT_TRUE(make({NodeId{kB}, NodeId{kC}}, kD));
  EXPECT_FALSE(make({NodeId{kC}, NodeId{kB}}, -1));
  EXPECT_FALSE(make({NodeId{kC}, NodeId{kC}}, -1));
  EXPECT_FALSE(make({NodeId{kC}, NodeId{kE}}, -1));
  EXPECT_FALSE(make({NodeId{kC}}, kB));
  EXPECT_FALSE(make({NodeId{kC}}, kC));
  EXPECT_FALSE(make({}, -1));
  EXPECT_FALSE(make({NodeId{77}}, -1));
  EXPECT_FALSE(make({NodeId{kF + 1}}, -1));
  EXPECT_FALSE(make({NodeId{kC}}, 77));
  EXPECT_FALSE(make({NodeId{kC}}, kF + 1));
  Use(true, {NodeId{kC}});
  EXPECT_FALSE(make({NodeId{kC}}, kD));  // copies may cross the end
}

}  // namespace
}  // namespace loadline::planner
