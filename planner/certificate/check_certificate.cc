// A plan is a point with columns in their ranges that obeys every row. So it
// obeys any sum of rows with multipliers that are not negative:
//   a * extra + b_1 * start_1 + ... + (terms in columns of {0, 1}) >= rhs.
// No start is later than the end, which is `extra` after the first runs, so
//   (a + b_1 + ...) * extra + (terms in columns of {0, 1}) >= another rhs.
// The time of the part is `extra` and the overheads of copies. To bound it, the
// overheads are taken off the terms. Each column of {0, 1} then adds at most
// its positive coefficient. Wrong multipliers give a weak bound, never a false
// one.
// Tested in tests/planner/certificate/check_certificate_test.cc and
// certificate_oracle_test.cc.
#include "planner/certificate/check_certificate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/certificate/fact_rows.h"
#include "planner/certificate/linear_row.h"
#include "planner/certificate/sum_rows.h"

namespace loadline::planner {
namespace {

__extension__ using Wide = __int128;

// Branches on the way to one leaf.
constexpr size_t kMostDepth = 200;

absl::Status Overflow() {
  return absl::InvalidArgumentError("certificate: its numbers exceed 127 bits");
}

// Sums of products of 63-bit numbers that notice an overflow.
class Exact {
 public:
  void Add(Wide number) {
    overflow_ |= __builtin_add_overflow(sum_, number, &sum_);
  }
  void AddProduct(int64_t a, int64_t b) { Add(static_cast<Wide>(a) * b); }
  void AddWideProduct(Wide a, Wide b) {
    Wide product = 0;
    overflow_ |= __builtin_mul_overflow(a, b, &product);
    Add(product);
  }
  bool overflow() const { return overflow_; }
  Wide sum() const { return sum_; }

 private:
  Wide sum_ = 0;
  bool overflow_ = false;
};

// The sum of all rows times their multipliers: terms >= rhs.
class Combination {
 public:
  Combination(const PartFacts& part, int64_t budget_bytes)
      : part_(part), budget_bytes_(budget_bytes) {}

  // `fixed`: distinct columns that sums mention too.
  absl::Status Add(const std::vector<CertificateRow>& rows,
                   const std::vector<FixedColumn>& fixed) {
    absl::flat_hash_set<CertificateColumn> seen;
    std::vector<CertificateColumn> mentioned;
    for (const FixedColumn& column : fixed) {
      if (seen.insert(column.column).second) mentioned.push_back(column.column);
    }
    for (const CertificateRow& row : rows) {
      LOADLINE_RETURN_IF_ERROR(CheckArguments(part_, row));
      if (IsSumRow(row.kind)) continue;
      LOADLINE_ASSIGN_OR_RETURN(const LinearRow made, FactRow(part_, row));
      for (const auto& [column, coefficient] : made.terms) {
        if (seen.insert(column).second) mentioned.push_back(column);
      }
      AddRow(made, row.multiplier);
    }
    const SumRows sums(part_, budget_bytes_, mentioned);
    std::vector<int64_t> compute(part_.cuts() + 1, 0);
    for (const CertificateRow& row : rows) {
      if (!IsSumRow(row.kind)) continue;
      AddRow(sums.Row(row), row.multiplier);
      if (row.kind == RowKind::kCompute) {
        if (compute[row.arguments[0]] != 0) {
          return absl::InvalidArgumentError(
              "certificate: a leaf has a row compute twice");
        }
        compute[row.arguments[0]] = row.multiplier;
      }
    }
    ExpandStaying(sums);
    AddFirstRuns(sums, compute);
    return overflow_ || rhs_.overflow() ? Overflow() : absl::OkStatus();
  }

  // Bound on the time of the part, in ticks.
  absl::StatusOr<int64_t> Bound(const std::vector<FixedColumn>& fixed) const {
    absl::flat_hash_map<CertificateColumn, int> values;
    for (const FixedColumn& column : fixed)
      values[column.column] = column.value;
    LOADLINE_ASSIGN_OR_RETURN(const Ends ends, SumOfEnds());
    Exact numerator = rhs_;
    numerator.Add(-ends.starts * compute_ticks());
    const Wide below = ends.extras + ends.starts;
    for (const auto& [column, coefficient] : terms_) {
      if (coefficient.overflow()) return Overflow();
      if (column.kind >= ColumnKind::kExtra) continue;
      Exact factor = coefficient;
      factor.AddWideProduct(-below, OverheadTicks(part_, column));
      if (factor.overflow()) return Overflow();
      const auto found = values.find(column);
      const bool one =
          found == values.end() ? factor.sum() > 0 : found->second == 1;
      if (one) numerator.Add(-factor.sum());
    }
    if (numerator.overflow()) return Overflow();
    const Wide above = numerator.sum();
    if (above <= 0 || below < 0) return 0;
    if (below == 0) return INT64_MAX;
    const Wide ticks = above / below + (above % below != 0);
    return static_cast<int64_t>(std::min<Wide>(ticks, INT64_MAX));
  }

 private:
  // The coefficients of `extra` and of the starts that the sum has as if they
  // were at the end.
  struct Ends {
    Wide extras = 0;
    Wide starts = 0;
  };
  absl::StatusOr<Ends> SumOfEnds() const {
    Exact extras;
    Exact starts;
    for (const auto& [column, coefficient] : terms_) {
      if (coefficient.overflow()) return Overflow();
      if (column.kind == ColumnKind::kExtra) extras.Add(coefficient.sum());
      if (column.kind == ColumnKind::kStart && coefficient.sum() > 0) {
        starts.Add(coefficient.sum());
      }
    }
    constexpr Wide kMost = Wide{1} << 64;
    const bool fits = !extras.overflow() && !starts.overflow() &&
                      starts.sum() < kMost && extras.sum() < kMost &&
                      extras.sum() > -kMost;
    if (!fits) return Overflow();
    return Ends{extras.sum(), starts.sum()};
  }

  Wide compute_ticks() const {
    return static_cast<Wide>(part_.problem().compute_ns) * kTicksPerNs;
  }

  void AddRow(const LinearRow& row, int64_t multiplier) {
    for (const auto& [column, coefficient] : row.terms) {
      terms_[column].AddProduct(multiplier, coefficient);
    }
    rhs_.AddProduct(multiplier, row.rhs);
  }

  // `staying` of an epoch is a name for a sum: put that in its place.
  void ExpandStaying(const SumRows& sums) {
    for (int i = 1; i < part_.cuts(); ++i) {
      const auto found = terms_.find(ColumnOf(ColumnKind::kStaying, i));
      if (found == terms_.end()) continue;
      const Exact factor = found->second;
      terms_.erase(found);
      const Wide sum = factor.sum();
      if (factor.overflow() || sum > INT64_MAX || sum < -INT64_MAX) {
        overflow_ = true;
        continue;
      }
      for (const auto& [column, coefficient] : sums.Staying(i)) {
        terms_[column].AddProduct(static_cast<int64_t>(sum), coefficient);
      }
    }
  }

  // A node first runs in one of its epochs, so it adds the least multiplier of
  // these to the right side.
  void AddFirstRuns(const SumRows& sums, const std::vector<int64_t>& compute) {
    for (const SumRows::FirstRuns& runs : sums.first_runs()) {
      const int64_t least = *std::min_element(compute.begin() + runs.first,
                                              compute.begin() + runs.last + 1);
      rhs_.AddProduct(least, runs.ticks);
    }
  }

  const PartFacts& part_;
  const int64_t budget_bytes_;
  absl::flat_hash_map<CertificateColumn, Exact> terms_;
  Exact rhs_;
  bool overflow_ = false;
};

// Are the arguments of a row or a column in range? `epochs` gives the smallest
// and the largest epoch that an argument may name.
template <typename Epochs>
bool InRange(const PartFacts& part, const CertificateKind& kind,
             const CertificateArguments& arguments, const Epochs& epochs) {
  const ProblemFacts& problem = part.problem();
  for (size_t i = 0; i < kind.arguments.size(); ++i) {
    int64_t low = 0;
    int64_t end = 0;
    switch (kind.arguments[i]) {
      case 'v':
        end = problem.values;
        break;
      case 'n':
        end = problem.nodes;
        break;
      case 'c':
        end = static_cast<int64_t>(problem.codecs(arguments[0]).size());
        break;
      default:
        low = epochs(i).first;
        end = epochs(i).second + 1;
    }
    if (arguments[i] < low || arguments[i] >= end) return false;
  }
  return true;
}

// The columns of {0, 1} that mean something for every plan: the others are not
// defined, and sums would count what is behind them twice.
absl::Status CheckColumn(const PartFacts& part,
                         const CertificateColumn& column) {
  if (column.kind >= ColumnKind::kExtra) {
    return absl::InvalidArgumentError(
        "certificate: a branch names no column of {0, 1}");
  }
  const ProblemFacts& problem = part.problem();
  const CertificateKind& kind = ColumnKinds()[static_cast<size_t>(column.kind)];
  const int low = column.kind == ColumnKind::kHomeIn ? 0 : 1;
  const int high =
      column.kind == ColumnKind::kHomeOut ? part.cuts() + 1 : part.cuts();
  bool good = InRange(part, kind, column.arguments,
                      [&](size_t) { return std::pair(low, high); });
  if (good && kind.arguments.front() == 'v') {
    const int value = column.arguments[0];
    const int p = problem.persistent[value];
    if (column.kind >= ColumnKind::kHome) {
      good = p >= 0 && problem.persistents[p].may_leave &&
             problem.persistents[p].versions.front() == value;
    } else if (column.kind != ColumnKind::kTaken) {
      good = p < 0;
    }
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "certificate: there is no such column ", kind.name, " to branch on"));
}

// Walks a tree in its order; the least that a leaf proves.
class TreeWalk {
 public:
  TreeWalk(const PartFacts& part, int64_t budget_bytes,
           const CertificatePart& of)
      : part_(part), budget_bytes_(budget_bytes), tree_(of.tree) {}

  absl::StatusOr<int64_t> Least() {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t ticks, LeastBelow());
    if (next_ != tree_.size()) {
      return absl::InvalidArgumentError(
          "certificate: a tree has nodes after its last leaf");
    }
    return ticks;
  }

 private:
  absl::StatusOr<int64_t> LeastBelow() {
    if (next_ >= tree_.size()) {
      return absl::InvalidArgumentError(
          "certificate: a tree ends before its last leaf");
    }
    const CertificateTreeNode& node = tree_[next_++];
    if (!node.branch) {
      return ProvenTicks(part_, budget_bytes_, node.rows, fixed_);
    }
    if (fixed_.size() == kMostDepth) {
      return absl::InvalidArgumentError("certificate: a tree is too deep");
    }
    LOADLINE_RETURN_IF_ERROR(CheckColumn(part_, node.column));
    int64_t least = INT64_MAX;
    for (int value : {0, 1}) {
      fixed_.push_back({node.column, value});
      LOADLINE_ASSIGN_OR_RETURN(const int64_t ticks, LeastBelow());
      fixed_.pop_back();
      least = std::min(least, ticks);
    }
    return least;
  }

  const PartFacts& part_;
  const int64_t budget_bytes_;
  const std::vector<CertificateTreeNode>& tree_;
  size_t next_ = 0;
  std::vector<FixedColumn> fixed_;
};

// The smallest and the largest epoch that an argument may name.
std::pair<int, int> EpochRange(RowKind kind, size_t argument, int cuts) {
  switch (kind) {
    case RowKind::kNeed:
      return {1, argument == 3 ? cuts + 1 : cuts};
    case RowKind::kHomeNeed:
      return {argument == 3 ? 1 : 0, argument == 3 ? cuts + 1 : cuts};
    case RowKind::kHomeCarry:
    case RowKind::kCompute:
    case RowKind::kInsFrom:
      return {0, cuts};
    case RowKind::kOutsBefore:
      return {1, cuts + 1};
    case RowKind::kRerunFits:
      return {1, cuts - 1};
    default:
      return {1, cuts};
  }
}

bool OfLanes(RowKind kind) { return kind >= RowKind::kCompute; }

}  // namespace

absl::Status CheckArguments(const PartFacts& part, const CertificateRow& row) {
  const ProblemFacts& problem = part.problem();
  const CertificateKind& kind = RowKinds()[static_cast<size_t>(row.kind)];
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate: row ", kind.name, " ", what));
  };
  if (row.multiplier < 0) return bad("has a negative multiplier");
  if (OfLanes(row.kind) && !(problem.copies && part.to_end())) {
    return bad("is about copies, and nothing may be copied");
  }
  const bool good = InRange(part, kind, row.arguments, [&](size_t argument) {
    return EpochRange(row.kind, argument, part.cuts());
  });
  if (!good) return bad("has an argument out of range");
  if ((row.kind == RowKind::kBack || row.kind == RowKind::kOutStays) &&
      !problem.copyable[row.arguments[0]]) {
    return bad("is about a value that may not be copied");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ProvenTicks(const PartFacts& part, int64_t budget_bytes,
                                    const std::vector<CertificateRow>& rows,
                                    const std::vector<FixedColumn>& fixed) {
  Combination combination(part, budget_bytes);
  LOADLINE_RETURN_IF_ERROR(combination.Add(rows, fixed));
  return combination.Bound(fixed);
}

absl::StatusOr<int64_t> CertifiedStepNs(const Problem& problem,
                                        int64_t budget_bytes,
                                        const Certificate& certificate) {
  const ProblemFacts facts(problem);
  if (certificate.parts.empty()) return facts.compute_ns;
  if (facts.compute_ns > kMostCertifiedNs) {
    return absl::InvalidArgumentError(
        "certificate: the problem's times are too large for one");
  }
  int64_t step_ns = facts.compute_ns;
  NodeId last_until{-1};
  for (size_t p = 0; p < certificate.parts.size(); ++p) {
    const CertificatePart& part = certificate.parts[p];
    // Parts add up where they follow one another.
    if (p > 0 && (last_until == NodeId{-1} || part.cuts.empty())) {
      return absl::InvalidArgumentError(
          "certificate: a part follows one that reaches the end");
    }
    LOADLINE_ASSIGN_OR_RETURN(const PartFacts part_facts,
                              PartFacts::Make(facts, part));
    if (p > 0 && part.cuts.front() != last_until) {
      // `until` is an ancestor of this part's first cut.
      LOADLINE_RETURN_IF_ERROR(
          PartFacts::Make(facts, {{last_until}, part.cuts.front(), {}})
              .status());
    }
    last_until = part.until;
    LOADLINE_ASSIGN_OR_RETURN(const int64_t ticks,
                              TreeWalk(part_facts, budget_bytes, part).Least());
    if (ticks == INT64_MAX) return INT64_MAX;
    if (facts.copies) {
      // A replay rounds to the nearest nanosecond, after roundings of its own.
      constexpr int64_t kReplayRoundingTicks = kTicksPerNs / 16;
      const Wide all = static_cast<Wide>(step_ns) * kTicksPerNs + ticks;
      const Wide rounded =
          (all + kTicksPerNs / 2 - kReplayRoundingTicks) / kTicksPerNs;
      step_ns = static_cast<int64_t>(std::min<Wide>(rounded, INT64_MAX));
    } else {
      const int64_t ns = ticks / kTicksPerNs + (ticks % kTicksPerNs != 0);
      if (__builtin_add_overflow(step_ns, ns, &step_ns)) return INT64_MAX;
    }
  }
  return step_ns;
}

}  // namespace loadline::planner
