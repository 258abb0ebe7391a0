// Rows about persistent values. Tested in
// tests/planner/certificate/rows_test.cc and certificate_oracle_test.cc.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/certificate/fact_rows.h"

namespace loadline::planner {
namespace {

class HomeMaker {
 public:
  HomeMaker(const PartFacts& part, const PersistentFacts& facts)
      : part_(part), facts_(facts), first_(facts.versions.front()) {}

  void Home(int64_t factor) {
    if (!facts_.may_rest_on_host) return;  // it is 0
    row_.Add(ColumnOf(ColumnKind::kHome, first_), factor);
  }
  void Keep(int64_t factor, int i) { Add(ColumnKind::kHomeKeep, factor, i); }
  void In(int64_t factor, int i) { Add(ColumnKind::kHomeIn, factor, i); }
  void Out(int64_t factor, int i) { Add(ColumnKind::kHomeOut, factor, i); }

  void Carry(int i) {
    if (i == 0) {
      Home(-1);
      row_.rhs = -1;
    } else {
      Keep(1, i);
    }
    In(1, i);
    Keep(-1, i + 1);
  }

  void End() {
    Keep(1, part_.cuts());
    In(1, part_.cuts());
    Home(1);
    row_.rhs = 1;
  }

  // Some version is needed later, so it is on the device or on the host; there
  // it was copied, or it is the first one, which rests there.
  void LeftBy(int i) {
    Out(1, i);
    Keep(1, i);
    const bool updated = facts_.last_updater >= 0 &&
                         part_.RanBefore(facts_.last_updater, i) == Ran::kYes;
    if (!updated) Home(1);
    row_.rhs = 1;
  }

  void OutStays(int i) {
    Out(1, i + 1);
    Out(-1, i);
  }

  void Return() {
    Out(1, part_.cuts() + 1);
    Home(-1);
  }

  void Need(int reader, int from, int until) {
    if (from == 0) {
      Home(-1);
      row_.rhs = -1;
    } else {
      Keep(1, from);
      AddRan(part_, reader, from, 1, row_);
    }
    for (int i = from; i < until; ++i) In(1, i);
    AddRanWithin(part_, reader, until, -1, row_);
  }

  void Input(int node, int i) {
    row_.Add(ColumnOf(ColumnKind::kRerun, node, i), -1);
    Keep(1, i);
    In(1, i);
  }

  LinearRow Take() { return std::move(row_); }

 private:
  void Add(ColumnKind kind, int64_t factor, int i) {
    row_.Add(ColumnOf(kind, first_, i), factor);
  }

  const PartFacts& part_;
  const PersistentFacts& facts_;
  const int first_;
  LinearRow row_;
};

}  // namespace

absl::StatusOr<LinearRow> HomeRow(const PartFacts& part,
                                  const CertificateRow& row) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "certificate: row ", RowKinds()[static_cast<size_t>(row.kind)].name,
        " of value ", row.arguments[0], " does not hold: ", why));
  };
  const ProblemFacts& problem = part.problem();
  const int value = row.arguments[0];
  const int p = problem.persistent[value];
  if (p < 0 || problem.persistents[p].versions.front() != value) {
    return refuse("it is no persistent value's first version");
  }
  const PersistentFacts& facts = problem.persistents[p];
  if (!facts.may_leave) return refuse("it never leaves the device");
  const auto reads = [&](int node) {
    return std::binary_search(facts.readers.begin(), facts.readers.end(), node);
  };
  HomeMaker maker(part, facts);
  const int b = row.arguments[1];
  const int c = row.arguments[2];
  const int d = row.arguments[3];
  switch (row.kind) {
    case RowKind::kHomeCarry:
      if (b >= part.cuts()) return refuse("no cut follows");
      maker.Carry(b);
      break;
    case RowKind::kHomeEnd:
      maker.End();
      break;
    case RowKind::kHomeOut:
      maker.LeftBy(b);
      break;
    case RowKind::kHomeOutStays:
      maker.OutStays(b);
      break;
    case RowKind::kHomeReturn:
      if (facts.last_updater < 0) return refuse("no node updates it");
      maker.Return();
      break;
    case RowKind::kHomeNeed:
      if (!reads(b)) return refuse("it is not read there");
      if (c >= d) return refuse("it names no epoch");
      maker.Need(b, c, d);
      break;
    case RowKind::kHomeInput:
      if (!reads(b)) return refuse("it is not read there");
      maker.Input(b, c);
      break;
    default:
      return refuse("it is a sum");
  }
  return maker.Take();
}

}  // namespace loadline::planner
