// What proves a plan's bound on the step time, as data. docs/certificates.md
// has the meaning of every row and column; planner/certificate/ checks it.
#ifndef LOADLINE_PLANNER_PROBLEM_CERTIFICATE_H_
#define LOADLINE_PLANNER_PROBLEM_CERTIFICATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/problem/ids.h"

namespace loadline::planner {

// One kind of row or column: its name in a file, and what its arguments are, a
// letter each: v value, n node, c position of a codec in the value's stash, e
// epoch or cut.
struct CertificateKind {
  absl::string_view name;
  absl::string_view arguments;
};

enum class RowKind {
  // Statements about single values and nodes:
  kNeed,
  kNeedOutput,
  kCarry,
  kBack,
  kOutStays,
  kDecode,
  kEncode,
  kEncodedCarry,
  kInput,
  kRan,
  kOrder,
  kInputOnce,
  kOutputOnce,
  kGone,
  // About persistent values, each named by its first version:
  kHomeCarry,
  kHomeEnd,
  kHomeOut,
  kHomeOutStays,
  kHomeReturn,
  kHomeNeed,
  kHomeInput,
  // Sums of bytes and of times:
  kBudget,
  kRerunFits,
  kTotal,
  kCompute,
  kOutsBefore,
  kOutsAfter,
  kInsFrom,
  kInsBefore,
  kBothLanes,
};

enum class ColumnKind {
  kKeep,
  kHost,
  kIn,
  kEncoded,
  kDecoded,
  kOnce,
  kRerun,
  kRanBefore,
  kTaken,
  kHome,
  kHomeKeep,
  kHomeIn,
  kHomeOut,
  // Not in {0, 1}; files do not name them:
  kExtra,
  kStart,
  kStaying,
};

absl::Span<const CertificateKind> RowKinds();     // by RowKind
absl::Span<const CertificateKind> ColumnKinds();  // by ColumnKind, in files

inline constexpr size_t kMostArguments = 4;
// Values and nodes by position; unused ones are 0.
using CertificateArguments = std::array<int32_t, kMostArguments>;

struct CertificateColumn {
  ColumnKind kind = ColumnKind::kExtra;
  CertificateArguments arguments = {};

  friend auto operator<=>(const CertificateColumn&,
                          const CertificateColumn&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const CertificateColumn& column) {
    return H::combine(std::move(state), column.kind, column.arguments);
  }
};

struct CertificateRow {
  RowKind kind = RowKind::kBudget;
  CertificateArguments arguments = {};
  int64_t multiplier = 0;
};

// A branching tree in the order node, zero's subtree, one's subtree. A branch
// has a column, which is 0 in the first subtree and 1 in the second; a leaf has
// rows.
struct CertificateTreeNode {
  bool branch = false;
  CertificateColumn column;
  std::vector<CertificateRow> rows;
};

// Proves time beyond the first runs of all nodes, from the first run of the
// first cut to that of `until` (or to the end of the training step).
struct CertificatePart {
  std::vector<NodeId> cuts;
  NodeId until{-1};  // -1: the end
  std::vector<CertificateTreeNode> tree;
};

// No part: every node runs once.
struct Certificate {
  std::vector<CertificatePart> parts;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_CERTIFICATE_H_
