// Tested in tests/planner/certificate/rows_test.cc (every kind, term by term)
// and certificate_oracle_test.cc (against exact optima).
#include "planner/certificate/fact_rows.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline::planner {
namespace {

absl::Status Refuse(const CertificateRow& row, absl::string_view why) {
  const CertificateKind& kind = RowKinds()[static_cast<size_t>(row.kind)];
  return absl::InvalidArgumentError(absl::StrCat(
      "certificate: row ", kind.name, "(",
      absl::StrJoin(row.arguments.begin(),
                    row.arguments.begin() + kind.arguments.size(), ", "),
      ") does not hold: ", why));
}

// The row's arguments, by meaning.
struct Maker {
  const PartFacts& part;
  const CertificateRow& row;
  const ProblemFacts& problem = part.problem();
  LinearRow made = {};

  int Argument(int i) const { return row.arguments[i]; }

  bool Plain(int value) const { return problem.persistent[value] < 0; }

  void AddColumn(ColumnKind kind, int64_t factor, int a, int b, int c = 0) {
    made.Add(ColumnOf(kind, a, b, c), factor);
  }
  void AddArrivals(int value, int i) {
    ForEachArrival(part, value, i, [&](const CertificateColumn& column) {
      made.Add(column, 1);
    });
  }
  void AddAvailable(int value, int i) {
    AddColumn(ColumnKind::kKeep, 1, value, i);
    AddArrivals(value, i);
  }
  // 1 or less: terms >= ... + factor * [made before cut i].
  void NeedMade(int value, int i) {
    const int producer = problem.index.producer[value];
    if (producer < 0) {
      made.rhs += 1;
    } else {
      AddRan(part, producer, i, -1, made);
    }
  }

  absl::StatusOr<LinearRow> Need(int value, int reader, int from, int until);
  absl::StatusOr<LinearRow> NeedOutput(int value, int from);
  absl::StatusOr<LinearRow> Carry(int value, int i);
  absl::StatusOr<LinearRow> EncodedCarry(int value, int codec, int i);
  absl::StatusOr<LinearRow> Input(int node, int value, int i);
  absl::StatusOr<LinearRow> Order(int node, int earlier, int i);
  absl::StatusOr<LinearRow> InputOnce(int value, int i);
  absl::StatusOr<LinearRow> OutputOnce(int value, int i);
  absl::StatusOr<LinearRow> Gone(int node, int i);
};

absl::StatusOr<LinearRow> Maker::Need(int value, int reader, int from,
                                      int until) {
  if (!problem.Reads(reader, value)) return Refuse(row, "it is not read there");
  if (from >= until) return Refuse(row, "it names no epoch");
  if (reader == part.cut(from)) {
    return Refuse(row, "the cut may overwrite its input");
  }
  AddAvailable(value, from);
  for (int i = from + 1; i < until; ++i) AddArrivals(value, i);
  // >= made before `from`, + ran within `until` - ran before `from` - 1
  NeedMade(value, from);
  AddRanWithin(part, reader, until, -1, made);
  AddRan(part, reader, from, 1, made);
  made.rhs -= 1;
  return made;
}

absl::StatusOr<LinearRow> Maker::NeedOutput(int value, int from) {
  if (!problem.index.is_output[value]) return Refuse(row, "it is no output");
  if (!part.to_end()) return Refuse(row, "the part ends before the step");
  AddAvailable(value, from);
  for (int i = from + 1; i <= part.cuts(); ++i) AddArrivals(value, i);
  NeedMade(value, from);
  return made;
}

absl::StatusOr<LinearRow> Maker::Carry(int value, int i) {
  if (i >= part.cuts()) return Refuse(row, "no cut follows");
  AddAvailable(value, i);
  AddColumn(ColumnKind::kKeep, -1, value, i + 1);
  NeedMade(value, i);
  made.rhs -= 1;
  return made;
}

absl::StatusOr<LinearRow> Maker::EncodedCarry(int value, int codec, int i) {
  if (i >= part.cuts()) return Refuse(row, "no cut follows");
  if (problem.copyable[value]) {
    return Refuse(row, "it may come encoded from the host");
  }
  AddAvailable(value, i);
  AddColumn(ColumnKind::kEncoded, 1, value, codec, i);
  AddColumn(ColumnKind::kEncoded, -1, value, codec, i + 1);
  NeedMade(value, i);
  made.rhs -= 1;
  return made;
}

absl::StatusOr<LinearRow> Maker::Input(int node, int value, int i) {
  if (!problem.Reads(node, value)) return Refuse(row, "it is not read there");
  AddColumn(ColumnKind::kRerun, -1, node, i);
  AddAvailable(value, i);
  return made;
}

absl::StatusOr<LinearRow> Maker::Order(int node, int earlier, int i) {
  const std::vector<int>& before = problem.before[node];
  if (!std::binary_search(before.begin(), before.end(), earlier)) {
    return Refuse(row, "the nodes may run in any order");
  }
  AddRan(part, earlier, i, 1, made);
  AddRan(part, node, i, -1, made);
  return made;
}

absl::StatusOr<LinearRow> Maker::InputOnce(int value, int i) {
  const int cut = part.cut(i);
  if (!problem.Reads(cut, value)) return Refuse(row, "it is not read there");
  AddColumn(ColumnKind::kKeep, -1, value, i);
  for (const auto& [from, to] : problem.problem.nodes[cut].inplace) {
    if (static_cast<int>(from) == value && Plain(static_cast<int>(to))) {
      AddColumn(ColumnKind::kTaken, -1, value, static_cast<int>(to), i);
    }
  }
  made.rhs = -1;
  return made;
}

absl::StatusOr<LinearRow> Maker::OutputOnce(int value, int i) {
  for (const auto& [from, to] : problem.problem.nodes[part.cut(i)].inplace) {
    if (static_cast<int>(to) == value) {
      AddColumn(ColumnKind::kTaken, -1, static_cast<int>(from), value, i);
    }
  }
  made.rhs = -1;
  return made;
}

absl::StatusOr<LinearRow> Maker::Gone(int node, int i) {
  for (int v : problem.reads[node]) {
    const int p = problem.persistent[v];
    if (p < 0) continue;
    const PersistentFacts& facts = problem.persistents[p];
    if (!facts.overwritten || facts.versions.front() != v) continue;
    if (facts.last_updater == part.cut(i) ||
        part.RanBefore(facts.last_updater, i) == Ran::kYes) {
      AddColumn(ColumnKind::kRerun, -1, node, i);
      return made;
    }
  }
  return Refuse(row, "no input of it is surely overwritten");
}

}  // namespace

void AddRan(const PartFacts& part, int node, int i, int64_t factor,
            LinearRow& row) {
  switch (part.RanBefore(node, i)) {
    case Ran::kYes:
      row.rhs -= factor;
      break;
    case Ran::kNo:
      break;
    case Ran::kUnknown:
      row.Add(ColumnOf(ColumnKind::kRanBefore, node, i), factor);
  }
}

void AddRanWithin(const PartFacts& part, int node, int i, int64_t factor,
                  LinearRow& row) {
  switch (part.RanWithin(node, i)) {
    case Ran::kYes:
      row.rhs -= factor;
      break;
    case Ran::kNo:
      break;
    case Ran::kUnknown:
      // By the end of a part that ends early: granted as not yet.
      if (i <= part.cuts()) {
        row.Add(ColumnOf(ColumnKind::kRanBefore, node, i), factor);
      }
  }
}

absl::StatusOr<LinearRow> FactRow(const PartFacts& part,
                                  const CertificateRow& row) {
  Maker maker{part, row};
  const int a = maker.Argument(0);
  const int b = maker.Argument(1);
  const int c = maker.Argument(2);
  const absl::string_view kinds =
      RowKinds()[static_cast<size_t>(row.kind)].arguments;
  if (row.kind < RowKind::kHomeCarry && row.kind != RowKind::kOutputOnce &&
      kinds.front() == 'v' && !maker.Plain(a)) {
    return Refuse(row, "the value is persistent");
  }
  switch (row.kind) {
    case RowKind::kNeed:
      return maker.Need(a, b, c, maker.Argument(3));
    case RowKind::kNeedOutput:
      return maker.NeedOutput(a, b);
    case RowKind::kCarry:
      return maker.Carry(a, b);
    case RowKind::kBack:
      maker.AddColumn(ColumnKind::kHost, 1, a, b);
      maker.AddColumn(ColumnKind::kIn, -1, a, b);
      return maker.made;
    case RowKind::kOutStays:
      if (b >= part.cuts()) return Refuse(row, "no cut follows");
      maker.AddColumn(ColumnKind::kHost, 1, a, b + 1);
      maker.AddColumn(ColumnKind::kHost, -1, a, b);
      return maker.made;
    case RowKind::kDecode:
      maker.AddColumn(ColumnKind::kEncoded, 1, a, b, c);
      maker.AddColumn(ColumnKind::kDecoded, -1, a, b, c);
      return maker.made;
    case RowKind::kEncode:
      maker.AddColumn(ColumnKind::kOnce, 1, a, b);
      maker.AddColumn(ColumnKind::kEncoded, -1, a, b, c);
      return maker.made;
    case RowKind::kEncodedCarry:
      return maker.EncodedCarry(a, b, c);
    case RowKind::kInput:
      if (!maker.Plain(b)) return Refuse(row, "the value is persistent");
      return maker.Input(a, b, c);
    case RowKind::kRan:
      maker.AddColumn(ColumnKind::kRerun, -1, a, b);
      AddRan(part, a, b, 1, maker.made);
      return maker.made;
    case RowKind::kOrder:
      return maker.Order(a, b, c);
    case RowKind::kInputOnce:
      return maker.InputOnce(a, b);
    case RowKind::kOutputOnce:
      return maker.OutputOnce(a, b);
    case RowKind::kGone:
      return maker.Gone(a, b);
    default:
      return HomeRow(part, row);
  }
}

}  // namespace loadline::planner
