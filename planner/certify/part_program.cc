// Which rows are worth a place: those about values that a first run after a cut
// surely needs, and about the inputs of nodes that may make these again.
// Whether a row holds is decided in planner/certificate/ alone. Tested in
// tests/planner/certify/certify_step_test.cc.
#include "planner/certify/part_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/certificate/check_certificate.h"
#include "planner/certificate/fact_rows.h"
#include "planner/certificate/sum_rows.h"

namespace loadline::planner {
namespace {

// Multipliers have at most so many bits: 17 digits in a file.
constexpr int kMultiplierBits = 56;
// A solution may break all rows by so much at this price for each unit: every
// node of a branching tree then has dual values, also where no plan is left.
constexpr double kElasticCost = 1e7;

}  // namespace

PartProgram::PartProgram(const PartFacts& part, int64_t budget_bytes,
                         bool free_nodes)
    : part_(part),
      problem_(part.problem()),
      budget_bytes_(budget_bytes),
      free_nodes_(free_nodes && part.cuts() == 1) {
  unit_ticks_ = static_cast<double>(kTicksPerNs) *
                std::max(1.0, static_cast<double>(problem_.compute_ns) /
                                  std::max(1, problem_.nodes));
  unit_bytes_ = std::max(1.0, static_cast<double>(budget_bytes));
  const int extra = ColumnFor(ColumnOf(ColumnKind::kExtra));
  program_.columns[extra].cost = 1;
  elastic_ = program_.AddColumn(kElasticCost, 0, kNoLimit, false);
  columns_.push_back({});
  FindTracked();
  AddFactRows();
  AddHomes();
  AddSumRows();
}

std::vector<CertificateRow> PartProgram::Multipliers(
    const std::vector<double>& row_duals) const {
  double most = 0;
  for (size_t r = 0; r < keys_.size(); ++r) {
    if (keys_[r].scale > 0)
      most = std::max(most, row_duals[r] / keys_[r].scale);
  }
  if (most <= 0) return {};
  const double factor = std::ldexp(1.0, kMultiplierBits) / most;
  std::vector<CertificateRow> rows;
  for (size_t r = 0; r < keys_.size(); ++r) {
    if (keys_[r].scale <= 0 || row_duals[r] <= 0) continue;
    CertificateRow row = keys_[r].row;
    row.multiplier = std::llround(factor * (row_duals[r] / keys_[r].scale));
    if (row.multiplier > 0) rows.push_back(row);
  }
  return rows;
}

bool PartProgram::MayHaveRun(int node, int i) const {
  const Ran ran = part_.RanBefore(node, i);
  return ran == Ran::kYes || (free_nodes_ && ran == Ran::kUnknown);
}

bool PartProgram::MayBeMade(int value, int i) const {
  const int producer = problem_.index.producer[value];
  return producer < 0 || MayHaveRun(producer, i);
}

// Does a first run after cut i, or the end, need the value?
bool PartProgram::Wanted(int value, int i) const {
  if (problem_.index.is_output[value] && part_.to_end()) return true;
  for (const NodeId id : problem_.index.consumers[value]) {
    const int n = static_cast<int>(id);
    if (part_.RanWithin(n, part_.cuts() + 1) != Ran::kYes) continue;
    if (free_nodes_ && part_.RanBefore(n, i) == Ran::kUnknown) return true;
    const int first = part_.First(n);
    if (first >= 1 && n == part_.cut(first)) {
      if (first > i) return true;
    } else if (first >= 1 && part_.Last(n) >= i && MayBeMade(value, first)) {
      return true;
    }
  }
  return false;
}

void PartProgram::FindTracked() {
  tracked_.assign(part_.cuts() + 2, std::vector<char>(problem_.values, 0));
  for (int i = part_.cuts(); i >= 1; --i) {
    for (int v = 0; v < problem_.values; ++v) {
      if (problem_.persistent[v] >= 0 || !MayBeMade(v, i)) continue;
      tracked_[i][v] = tracked_[i + 1][v] || Wanted(v, i);
    }
    AddInputsOfReruns(i);
  }
}

// Backwards in the given order, so that whole chains of reruns are found.
void PartProgram::AddInputsOfReruns(int i) {
  std::vector<char>& tracked = tracked_[i];
  for (int n = problem_.nodes - 1; n >= 0; --n) {
    if (!problem_.problem.nodes[n].recompute || !MayHaveRun(n, i)) continue;
    const auto& makes = problem_.makes[n];
    if (std::none_of(makes.begin(), makes.end(),
                     [&](int v) { return tracked[v] != 0; })) {
      continue;
    }
    reruns_.push_back({i, n});
    for (int u : problem_.reads[n]) {
      if (problem_.persistent[u] < 0) tracked[u] = 1;
    }
  }
}

void PartProgram::AddFactRows() {
  for (int v = 0; v < problem_.values; ++v) {
    if (problem_.persistent[v] >= 0) continue;
    AddNeeds(v);
    if (free_nodes_) AddNeedsOfFree(v);
    for (int i = 1; i <= part_.cuts(); ++i) {
      if (tracked_[i][v]) AddPlaces(v, i);
    }
  }
  AddReruns();
  AddOrders();
  AddCutRows();
}

void PartProgram::AddNeeds(int value) {
  const int end = part_.cuts() + 1;
  std::vector<std::pair<int, int>> seen;
  for (const NodeId id : problem_.index.consumers[value]) {
    const int n = static_cast<int>(id);
    if (part_.RanWithin(n, end) != Ran::kYes) continue;
    int from = part_.First(n);
    if (from < 1) continue;
    int until = part_.Last(n) + 1;
    if (n == part_.cut(from)) until = from--;
    if (from < 1 || part_.MadeBefore(value, from) != Ran::kYes) continue;
    if (std::find(seen.begin(), seen.end(), std::pair(from, until)) !=
        seen.end()) {
      continue;
    }
    seen.push_back({from, until});
    TryRow(RowKind::kNeed, value, n, from, until);
  }
  if (problem_.index.is_output[value] && part_.to_end() &&
      MayBeMade(value, part_.cuts())) {
    TryRow(RowKind::kNeedOutput, value, part_.cuts());
  }
}

// A reader or the maker may run before the cut or after it.
void PartProgram::AddNeedsOfFree(int value) {
  if (!MayBeMade(value, 1)) return;
  const bool made = part_.MadeBefore(value, 1) == Ran::kYes;
  for (const NodeId id : problem_.index.consumers[value]) {
    const int n = static_cast<int>(id);
    const Ran ran = part_.RanBefore(n, 1);
    if (ran == Ran::kYes || n == part_.cut(1)) continue;
    if (made && ran == Ran::kNo) continue;  // AddNeeds has it
    if (part_.RanWithin(n, 2) != Ran::kYes) continue;
    TryRow(RowKind::kNeed, value, n, 1, 2);
  }
}

void PartProgram::AddPlaces(int value, int i) {
  const bool carried = i < part_.cuts() && tracked_[i + 1][value];
  if (carried) TryRow(RowKind::kCarry, value, i);
  if (problem_.copyable[value]) {
    TryRow(RowKind::kBack, value, i);
    if (carried) TryRow(RowKind::kOutStays, value, i);
  }
  for (int c = 0; c < static_cast<int>(problem_.codecs(value).size()); ++c) {
    TryRow(RowKind::kDecode, value, c, i);
    TryRow(RowKind::kEncode, value, c, i);
    if (carried && !problem_.copyable[value]) {
      TryRow(RowKind::kEncodedCarry, value, c, i);
    }
  }
}

void PartProgram::AddReruns() {
  for (const auto& [i, n] : reruns_) {
    if (part_.RanBefore(n, i) != Ran::kYes) TryRow(RowKind::kRan, n, i);
    for (int u : problem_.reads[n]) {
      const int p = problem_.persistent[u];
      if (p < 0) {
        TryRow(RowKind::kInput, n, u, i);
        continue;
      }
      const PersistentFacts& facts = problem_.persistents[p];
      if (facts.may_leave) {
        TryRow(RowKind::kHomeInput, facts.versions.front(), n, i);
      }
      if (facts.overwritten && facts.versions.front() == u &&
          (facts.last_updater == part_.cut(i) ||
           part_.RanBefore(facts.last_updater, i) == Ran::kYes)) {
        TryRow(RowKind::kGone, n, i);
      }
    }
  }
}

void PartProgram::AddOrders() {
  if (!free_nodes_) return;
  for (int n = 0; n < problem_.nodes; ++n) {
    if (part_.RanBefore(n, 1) != Ran::kUnknown) continue;
    for (int p : problem_.before[n]) {
      if (part_.RanBefore(p, 1) == Ran::kUnknown) {
        TryRow(RowKind::kOrder, n, p, 1);
      }
    }
  }
}

void PartProgram::AddCutRows() {
  for (int i = 1; i <= part_.cuts(); ++i) {
    std::vector<int> inputs, outputs;
    for (const auto& [from, to] :
         problem_.problem.nodes[part_.cut(i)].inplace) {
      if (problem_.persistent[static_cast<int>(to)] >= 0) continue;
      outputs.push_back(static_cast<int>(to));
      if (problem_.persistent[static_cast<int>(from)] < 0) {
        inputs.push_back(static_cast<int>(from));
      }
    }
    for (auto* values : {&inputs, &outputs}) {
      std::sort(values->begin(), values->end());
      values->erase(std::unique(values->begin(), values->end()), values->end());
    }
    for (int v : inputs) TryRow(RowKind::kInputOnce, v, i);
    for (int v : outputs) TryRow(RowKind::kOutputOnce, v, i);
  }
}

void PartProgram::AddHomes() {
  const int cuts = part_.cuts();
  for (const PersistentFacts& facts : problem_.persistents) {
    if (!facts.may_leave) continue;
    const int v = facts.versions.front();
    for (int i = 0; i < cuts; ++i) TryRow(RowKind::kHomeCarry, v, i);
    TryRow(RowKind::kHomeEnd, v);
    for (int i = 1; i <= cuts; ++i) {
      TryRow(RowKind::kHomeOut, v, i);
      TryRow(RowKind::kHomeOutStays, v, i);
    }
    if (facts.last_updater >= 0) TryRow(RowKind::kHomeReturn, v);
    std::vector<std::pair<int, int>> seen;
    for (int n : facts.readers) {
      int from = part_.First(n);
      int until = part_.Last(n) + 1;
      // What the cut reads is there when it starts.
      if (from >= 1 && n == part_.cut(from)) until = from--;
      if (std::find(seen.begin(), seen.end(), std::pair(from, until)) !=
          seen.end()) {
        continue;
      }
      seen.push_back({from, until});
      TryRow(RowKind::kHomeNeed, v, n, from, until);
    }
  }
}

void PartProgram::AddSumRows() {
  SumRows sums(part_, budget_bytes_, columns_);
  const auto add = [&](RowKind kind, double scale, int a = 0, int b = 0) {
    const CertificateRow key = {kind, {a, b, 0, 0}, 0};
    AddRow(sums.Row(key), scale, key, {});
  };
  const int cuts = part_.cuts();
  add(RowKind::kTotal, unit_ticks_);
  for (int i = 1; i <= cuts; ++i) add(RowKind::kBudget, unit_bytes_, i);
  for (int i = 1; i < cuts; ++i) {
    Terms terms = {{ColumnFor(ColumnOf(ColumnKind::kStaying, i)), -1}};
    for (const auto& [column, bytes] : sums.Staying(i)) {
      terms.push_back(
          {ColumnFor(column), static_cast<double>(bytes) / unit_bytes_});
    }
    program_.AddRow(0, 0, terms);
    keys_.push_back({});
  }
  for (const auto& [i, n] : reruns_) {
    if (i < cuts) add(RowKind::kRerunFits, unit_bytes_, n, i);
  }
  if (!problem_.copies || !part_.to_end()) return;
  const std::vector<Terms> portions = AddPortions(sums);
  for (int i = 0; i <= cuts; ++i) {
    const CertificateRow key = {RowKind::kCompute, {i, 0, 0, 0}, 0};
    AddRow(sums.Row(key), unit_ticks_, key, portions[i]);
    add(RowKind::kInsFrom, unit_ticks_, i);
  }
  for (int i = 1; i <= cuts; ++i) {
    add(RowKind::kOutsBefore, unit_ticks_, i);
    add(RowKind::kOutsAfter, unit_ticks_, i);
    add(RowKind::kInsBefore, unit_ticks_, i);
  }
  add(RowKind::kOutsBefore, unit_ticks_, cuts + 1);
  add(RowKind::kBothLanes, unit_ticks_);
}

// The checker knows in which epochs first runs may lie; here columns say it: by
// epoch, the terms that its row `compute` loses to them.
std::vector<PartProgram::Terms> PartProgram::AddPortions(const SumRows& sums) {
  std::vector<Terms> portions(part_.cuts() + 1);
  for (const SumRows::FirstRuns& runs : sums.first_runs()) {
    const double ticks = static_cast<double>(runs.ticks) / unit_ticks_;
    Terms all;
    for (int i = runs.first; i <= runs.last; ++i) {
      const int column = program_.AddColumn(0, 0, ticks, false);
      columns_.push_back({});
      all.push_back({column, 1});
      portions[i].push_back({column, -1});
    }
    program_.AddRow(ticks, ticks, all);
    keys_.push_back({});
  }
  return portions;
}

// The columns are {0, 1}, or times in units, or bytes in units.
int PartProgram::ColumnFor(const CertificateColumn& column) {
  const auto [place, added] =
      places_.try_emplace(column, static_cast<int>(columns_.size()));
  if (added) {
    const bool binary = column.kind < ColumnKind::kExtra;
    const bool time =
        column.kind == ColumnKind::kExtra || column.kind == ColumnKind::kStart;
    const double overhead =
        static_cast<double>(OverheadTicks(part_, column)) / unit_ticks_;
    program_.AddColumn(std::min(overhead, kElasticCost),
                       binary || time ? 0 : -kNoLimit, binary ? 1 : kNoLimit,
                       binary);
    columns_.push_back(column);
  }
  return place->second;
}

void PartProgram::AddRow(const LinearRow& row, double scale,
                         const CertificateRow& key, Terms terms) {
  for (const auto& [column, coefficient] : row.terms) {
    double unit = 1;
    if (column.kind == ColumnKind::kExtra ||
        column.kind == ColumnKind::kStart) {
      unit = unit_ticks_;
    } else if (column.kind == ColumnKind::kStaying) {
      unit = unit_bytes_;
    }
    terms.push_back(
        {ColumnFor(column), static_cast<double>(coefficient) * unit / scale});
  }
  terms.push_back({elastic_, 1});
  program_.AddRow(static_cast<double>(row.rhs) / scale, kNoLimit, terms);
  keys_.push_back({key, scale});
}

void PartProgram::TryRow(RowKind kind, int a, int b, int c, int d) {
  const CertificateRow key = {kind, {a, b, c, d}, 0};
  if (!CheckArguments(part_, key).ok()) return;
  const absl::StatusOr<LinearRow> row = FactRow(part_, key);
  if (row.ok()) AddRow(*row, 1, key, {});
}

}  // namespace loadline::planner
