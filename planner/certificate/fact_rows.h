// The rows of a certificate that state facts about single values and nodes. The
// meaning of every column and the reason of every row: docs/certificates.md.
#ifndef LOADLINE_PLANNER_CERTIFICATE_FACT_ROWS_H_
#define LOADLINE_PLANNER_CERTIFICATE_FACT_ROWS_H_

#include "absl/status/statusor.h"
#include "planner/certificate/linear_row.h"
#include "planner/certificate/part_facts.h"
#include "planner/problem/certificate.h"

namespace loadline::planner {

// Errors: a row that does not hold for every valid plan with these arguments,
// as where a node does not read the value. Not for the rows of sum_rows.h.
absl::StatusOr<LinearRow> FactRow(const PartFacts& part,
                                  const CertificateRow& row);

// Those about persistent values; FactRow calls it.
absl::StatusOr<LinearRow> HomeRow(const PartFacts& part,
                                  const CertificateRow& row);

// Has the node first run before cut i? A constant or a column, times `factor`,
// on the left side of the row.
void AddRan(const PartFacts& part, int node, int i, int64_t factor,
            LinearRow& row);
void AddRanWithin(const PartFacts& part, int node, int i, int64_t factor,
                  LinearRow& row);

// The ways in which a value that was made before epoch i comes to the device in
// it. Calls `add` with each column.
template <typename Function>
void ForEachArrival(const PartFacts& part, int value, int i,
                    const Function& add) {
  const ProblemFacts& problem = part.problem();
  const int producer = problem.index.producer[value];
  if (producer >= 0 && problem.problem.nodes[producer].recompute) {
    add(ColumnOf(ColumnKind::kRerun, producer, i));
  }
  if (problem.copyable[value]) add(ColumnOf(ColumnKind::kIn, value, i));
  for (size_t c = 0; c < problem.codecs(value).size(); ++c) {
    add(ColumnOf(ColumnKind::kDecoded, value, static_cast<int>(c), i));
  }
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_FACT_ROWS_H_
