// Tested in tests/planner/certificate/rows_test.cc and
// certificate_oracle_test.cc.
#include "planner/certificate/sum_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace loadline::planner {
namespace {

__extension__ using Wide = __int128;

// Where the epoch is among a column's arguments; -1: it has none.
int EpochPlace(ColumnKind kind) {
  const absl::string_view arguments =
      ColumnKinds()[static_cast<size_t>(kind)].arguments;
  return arguments.back() == 'e' ? static_cast<int>(arguments.size()) - 1 : -1;
}

}  // namespace

bool IsSumRow(RowKind kind) { return kind >= RowKind::kBudget; }

int64_t OverheadTicks(const PartFacts& part, const CertificateColumn& column) {
  // What was copied out by one cut was by the next, so one column counts it.
  const int value_out = part.cuts();
  const int home_out = part.cuts() + 1;
  const bool copy =
      column.kind == ColumnKind::kIn || column.kind == ColumnKind::kHomeIn ||
      (column.kind == ColumnKind::kHost && column.arguments[1] == value_out) ||
      (column.kind == ColumnKind::kHomeOut && column.arguments[1] == home_out);
  return copy && part.to_end() ? part.problem().copy_overhead_ticks : 0;
}

SumRows::SumRows(const PartFacts& part, int64_t budget_bytes,
                 const std::vector<CertificateColumn>& mentioned)
    : part_(part),
      problem_(part.problem()),
      budget_bytes_(part.problem().Charged(budget_bytes)),
      columns_(part.cuts() + 2) {
  for (const CertificateColumn& column : mentioned) {
    if (column.kind >= ColumnKind::kExtra) continue;
    const int place = EpochPlace(column.kind);
    const int epoch = place < 0 ? 0 : column.arguments[place];
    columns_[epoch].of[static_cast<size_t>(column.kind)].push_back(column);
  }
  std::map<std::pair<int, int>, int64_t> ticks;
  for (int n = 0; n < problem_.nodes; ++n) {
    ticks[{part.First(n), part.Last(n)}] += problem_.least_ns[n] * kTicksPerNs;
  }
  for (const auto& [range, sum] : ticks) {
    first_runs_.push_back({range.first, range.second, sum});
  }
}

LinearRow SumRows::Row(const CertificateRow& row) const {
  const int a = row.arguments[0];
  switch (row.kind) {
    case RowKind::kBudget:
      return Budget(a);
    case RowKind::kRerunFits:
      return RerunFits(a, row.arguments[1]);
    case RowKind::kTotal:
      return Total();
    case RowKind::kCompute:
      return Compute(a);
    case RowKind::kOutsBefore:
      return OutsBefore(a);
    case RowKind::kOutsAfter:
      return OutsAfter(a);
    case RowKind::kInsFrom:
      return InsFrom(a);
    case RowKind::kInsBefore:
      return InsBefore(a);
    default:
      return BothLanes();
  }
}

// What is alive when the cut starts fits the budget.
LinearRow SumRows::Budget(int i) const {
  const int cut = part_.cut(i);
  LinearRow row;
  Wide left = budget_bytes_;
  left -= problem_.least_workspace_bytes[cut];
  const auto plain = [&](int v) { return problem_.persistent[v] < 0; };
  const auto made = [&](int v) { return problem_.index.producer[v] == cut; };
  for (int v : problem_.makes[cut]) {
    if (plain(v)) left -= problem_.bytes[v];
  }
  for (int v : problem_.reads[cut]) {
    if (plain(v)) left -= problem_.bytes[v];
  }
  for (const PersistentFacts& facts : problem_.persistents) {
    if (std::binary_search(facts.readers.begin(), facts.readers.end(), cut)) {
      left -= problem_.bytes[facts.versions.front()];
    } else if (facts.AlwaysOnDevice()) {
      left -= facts.least_bytes;
    }
  }
  for (const CertificateColumn& column : Of(ColumnKind::kKeep, i)) {
    const int v = column.arguments[0];
    if (made(v) || problem_.Reads(cut, v)) continue;
    row.Add(column, -problem_.bytes[v]);
  }
  for (const CertificateColumn& column : Of(ColumnKind::kEncoded, i)) {
    const int v = column.arguments[0];
    if (made(v)) continue;
    row.Add(column,
            -problem_.Charged(problem_.codecs(v)[column.arguments[1]].bytes));
  }
  for (const CertificateColumn& column : Of(ColumnKind::kHomeKeep, i)) {
    const PersistentFacts& facts = Persistent(column.arguments[0]);
    if (std::binary_search(facts.readers.begin(), facts.readers.end(), cut)) {
      continue;
    }
    row.Add(column, -facts.least_bytes);
  }
  // Outputs may lie over inputs, so these terms weaken the row: always there.
  for (const auto& [from, to] : problem_.problem.nodes[cut].inplace) {
    const int out = static_cast<int>(to);
    if (!plain(out)) continue;
    row.Add(ColumnOf(ColumnKind::kTaken, static_cast<int>(from), out, i),
            problem_.bytes[out]);
  }
  row.rhs = static_cast<int64_t>(-left);
  return row;
}

// While a node runs again in an epoch, its buffers fit next to what stays on
// the device all through the epoch.
LinearRow SumRows::RerunFits(int node, int i) const {
  LinearRow row;
  row.Add(ColumnOf(ColumnKind::kRerun, node, i), -RunBytes(node));
  row.Add(ColumnOf(ColumnKind::kStaying, i), -1);
  std::vector<int> own = problem_.reads[node];
  own.insert(own.end(), problem_.makes[node].begin(),
             problem_.makes[node].end());
  for (int v : own) {
    const std::vector<CertificateColumn>& kept = Of(ColumnKind::kKeep, i + 1);
    const CertificateColumn column = ColumnOf(ColumnKind::kKeep, v, i + 1);
    if (MayStay(v, i) &&
        std::find(kept.begin(), kept.end(), column) != kept.end()) {
      AddStaying(v, i, 1, row);
    }
  }
  row.rhs = AlwaysBytes() - budget_bytes_;
  return row;
}

std::vector<std::pair<CertificateColumn, int64_t>> SumRows::Staying(
    int epoch) const {
  LinearRow row;
  for (const CertificateColumn& column : Of(ColumnKind::kKeep, epoch + 1)) {
    const int v = column.arguments[0];
    if (MayStay(v, epoch)) AddStaying(v, epoch, 1, row);
  }
  return row.terms;
}

// Values that may be copied or encoded are left out: they may have been away
// within the epoch.
bool SumRows::MayStay(int value, int epoch) const {
  return problem_.persistent[value] < 0 && !problem_.copyable[value] &&
         problem_.codecs(value).empty() &&
         part_.MadeBefore(value, epoch) == Ran::kYes;
}

// Of a value that is there at the next cut and was not made again: its bytes.
void SumRows::AddStaying(int value, int epoch, int64_t sign,
                         LinearRow& row) const {
  const int64_t bytes = sign * problem_.bytes[value];
  row.Add(ColumnOf(ColumnKind::kKeep, value, epoch + 1), bytes);
  const int producer = problem_.index.producer[value];
  if (producer >= 0 && problem_.problem.nodes[producer].recompute) {
    row.Add(ColumnOf(ColumnKind::kRerun, producer, epoch), -bytes);
  }
}

int64_t SumRows::AlwaysBytes() const {
  int64_t bytes = 0;
  for (const PersistentFacts& facts : problem_.persistents) {
    if (facts.AlwaysOnDevice()) bytes += facts.least_bytes;
  }
  return bytes;
}

int64_t SumRows::RunBytes(int node) const {
  int64_t bytes = problem_.least_workspace_bytes[node];
  for (int v : problem_.reads[node]) {
    const bool counted =
        problem_.persistent[v] >= 0 && Persistent(v).AlwaysOnDevice();
    if (!counted) bytes += problem_.bytes[v];
  }
  const auto& pairs = problem_.problem.nodes[node].inplace;
  for (int v : problem_.makes[node]) {
    const bool may_lie_over = std::any_of(
        pairs.begin(), pairs.end(),
        [&](const auto& pair) { return static_cast<int>(pair.second) == v; });
    if (!may_lie_over) bytes += problem_.bytes[v];
  }
  return bytes;
}

// Reruns and decodes of the epoch.
void SumRows::AddWork(int epoch, LinearRow& row) const {
  for (const CertificateColumn& column : Of(ColumnKind::kRerun, epoch)) {
    row.Add(column, -problem_.least_ns[column.arguments[0]] * kTicksPerNs);
  }
  for (const CertificateColumn& column : Of(ColumnKind::kDecoded, epoch)) {
    const Codec& codec =
        problem_.codecs(column.arguments[0])[column.arguments[1]];
    row.Add(column, -codec.decode_ns * kTicksPerNs);
  }
}

// Time beyond the first runs is at least that of all other compute.
LinearRow SumRows::Total() const {
  LinearRow row;
  row.Add(ColumnOf(ColumnKind::kExtra), 1);
  for (int i = 1; i <= part_.cuts(); ++i) AddWork(i, row);
  // An encode before a part that ends early may serve a later part too.
  if (!part_.to_end()) return row;
  for (const CertificateColumn& column : Of(ColumnKind::kOnce, 0)) {
    const Codec& codec =
        problem_.codecs(column.arguments[0])[column.arguments[1]];
    row.Add(column, -codec.encode_ns * kTicksPerNs);
  }
  return row;
}

// From the start of epoch `from` to that of epoch `until`, on the left side.
void SumRows::AddSpan(int from, int until, LinearRow& row) const {
  if (from > 0) row.Add(ColumnOf(ColumnKind::kStart, from), -1);
  if (until <= part_.cuts()) {
    row.Add(ColumnOf(ColumnKind::kStart, until), 1);
  } else {
    row.Add(ColumnOf(ColumnKind::kExtra), 1);
    row.rhs -= problem_.compute_ns * kTicksPerNs;
  }
}

LinearRow SumRows::Compute(int i) const {
  LinearRow row;
  AddSpan(i, i + 1, row);
  AddWork(i, row);
  return row;
}

// What is on the host when the cut starts was copied out before.
LinearRow SumRows::OutsBefore(int i) const {
  LinearRow row;
  AddSpan(0, i, row);
  for (const CertificateColumn& column :
       Of(ColumnKind::kHost, std::min(i, part_.cuts()))) {
    row.Add(column, -problem_.out_ticks[column.arguments[0]]);
  }
  for (const CertificateColumn& column : Of(ColumnKind::kHomeOut, i)) {
    row.Add(column, -Persistent(column.arguments[0]).out_ticks);
  }
  return row;
}

// The last version goes to a home on the host after the last update.
LinearRow SumRows::OutsAfter(int i) const {
  LinearRow row;
  AddSpan(i, part_.cuts() + 1, row);
  for (const CertificateColumn& column : Of(ColumnKind::kHome, 0)) {
    const PersistentFacts& facts = Persistent(column.arguments[0]);
    if (facts.last_updater < 0 || part_.First(facts.last_updater) < i) continue;
    row.Add(column, -facts.out_ticks);
  }
  return row;
}

LinearRow SumRows::InsFrom(int i) const {
  LinearRow row;
  AddSpan(i, part_.cuts() + 1, row);
  for (int j = i; j <= part_.cuts(); ++j) {
    for (const CertificateColumn& column : Of(ColumnKind::kIn, j)) {
      row.Add(column, -problem_.in_ticks[column.arguments[0]]);
    }
    for (const CertificateColumn& column : Of(ColumnKind::kHomeIn, j)) {
      row.Add(column, -Persistent(column.arguments[0]).in_ticks);
    }
  }
  return row;
}

// What rests on the host and is read by the cut or before came in before.
LinearRow SumRows::InsBefore(int i) const {
  LinearRow row;
  AddSpan(0, i, row);
  for (const CertificateColumn& column : Of(ColumnKind::kHome, 0)) {
    const PersistentFacts& facts = Persistent(column.arguments[0]);
    const bool read =
        std::any_of(facts.readers.begin(), facts.readers.end(), [&](int n) {
          return n == part_.cut(i) || part_.RanBefore(n, i) == Ran::kYes;
        });
    if (read) row.Add(column, -facts.in_ticks);
  }
  return row;
}

// While both lanes move bytes, together they do at most `speed` times the work
// of one lane alone, and never less than one lane. Latencies move nothing.
LinearRow SumRows::BothLanes() const {
  constexpr int64_t kWhole = int64_t{1} << 20;
  const Machine& machine = *problem_.problem.machine;
  const double both =
      std::ceil(2 * machine.d2h_h2d_factor * static_cast<double>(kWhole));
  const int64_t speed = std::max(kWhole, static_cast<int64_t>(both));
  const auto moving = [&](const Link& link, int64_t ticks) {
    const Wide latency = static_cast<Wide>(link.latency_ns) * kTicksPerNs;
    return static_cast<int64_t>(std::max<Wide>(ticks - latency, 0) * kWhole /
                                speed);
  };
  const int last = part_.cuts();
  LinearRow row;
  AddSpan(0, last + 1, row);
  for (const CertificateColumn& column : Of(ColumnKind::kHost, last)) {
    row.Add(column,
            -moving(machine.d2h, problem_.out_ticks[column.arguments[0]]));
  }
  for (const CertificateColumn& column : Of(ColumnKind::kHomeOut, last + 1)) {
    row.Add(column,
            -moving(machine.d2h, Persistent(column.arguments[0]).out_ticks));
  }
  for (int i = 0; i <= last; ++i) {
    for (const CertificateColumn& column : Of(ColumnKind::kIn, i)) {
      row.Add(column,
              -moving(machine.h2d, problem_.in_ticks[column.arguments[0]]));
    }
    for (const CertificateColumn& column : Of(ColumnKind::kHomeIn, i)) {
      row.Add(column,
              -moving(machine.h2d, Persistent(column.arguments[0]).in_ticks));
    }
  }
  return row;
}

}  // namespace loadline::planner
