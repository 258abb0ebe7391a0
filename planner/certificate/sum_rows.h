// The rows of a certificate that add bytes or times. Terms that only strengthen
// a row may be left out, so a row has the terms of columns that other rows
// mention, and no others: a certificate stays short to check.
#ifndef LOADLINE_PLANNER_CERTIFICATE_SUM_ROWS_H_
#define LOADLINE_PLANNER_CERTIFICATE_SUM_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "planner/certificate/linear_row.h"
#include "planner/certificate/part_facts.h"

namespace loadline::planner {

bool IsSumRow(RowKind kind);

// By how much the step is longer if the column is 1, besides the time of the
// lanes: the overhead of a copy that only this column says is made.
int64_t OverheadTicks(const PartFacts& part, const CertificateColumn& column);

class SumRows {
 public:
  // `mentioned`: distinct columns. The part must outlive this.
  SumRows(const PartFacts& part, int64_t budget_bytes,
          const std::vector<CertificateColumn>& mentioned);

  // Requires IsSumRow and arguments in range. A row `compute` has no term for
  // first runs: FirstRuns.
  LinearRow Row(const CertificateRow& row) const;

  // What column `staying` of an epoch stands for: at most the bytes of values
  // that stay on the device all through it.
  std::vector<std::pair<CertificateColumn, int64_t>> Staying(int epoch) const;

  // Ticks of first runs that lie in epochs [first, last], for every such pair
  // that some node has.
  struct FirstRuns {
    int first = 0;
    int last = 0;
    int64_t ticks = 0;
  };
  const std::vector<FirstRuns>& first_runs() const { return first_runs_; }

 private:
  // Mentioned columns of one epoch or, of those without an epoch, of epoch 0.
  struct Columns {
    std::vector<CertificateColumn> of[16];  // by ColumnKind
  };
  const std::vector<CertificateColumn>& Of(ColumnKind kind, int epoch) const {
    return columns_[epoch].of[static_cast<size_t>(kind)];
  }

  LinearRow Budget(int i) const;
  LinearRow RerunFits(int node, int i) const;
  LinearRow Total() const;
  LinearRow Compute(int i) const;
  LinearRow OutsBefore(int i) const;
  LinearRow OutsAfter(int i) const;
  LinearRow InsFrom(int i) const;
  LinearRow InsBefore(int i) const;
  LinearRow BothLanes() const;

  void AddSpan(int from, int until, LinearRow& row) const;
  void AddWork(int epoch, LinearRow& row) const;
  bool MayStay(int value, int epoch) const;
  void AddStaying(int value, int epoch, int64_t sign, LinearRow& row) const;
  int64_t AlwaysBytes() const;
  int64_t RunBytes(int node) const;
  const PersistentFacts& Persistent(int value) const {
    return problem_.persistents[problem_.persistent[value]];
  }

  const PartFacts& part_;
  const ProblemFacts& problem_;
  const int64_t budget_bytes_;    // charged
  std::vector<Columns> columns_;  // by epoch, to cuts() + 1
  std::vector<FirstRuns> first_runs_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_SUM_ROWS_H_
