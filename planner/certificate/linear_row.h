// A row of a certificate: terms >= rhs, with integers, for every valid plan.
#ifndef LOADLINE_PLANNER_CERTIFICATE_LINEAR_ROW_H_
#define LOADLINE_PLANNER_CERTIFICATE_LINEAR_ROW_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/problem/certificate.h"

namespace loadline::planner {

struct LinearRow {
  std::vector<std::pair<CertificateColumn, int64_t>> terms;
  int64_t rhs = 0;

  void Add(const CertificateColumn& column, int64_t coefficient) {
    terms.push_back({column, coefficient});
  }
};

inline CertificateColumn ColumnOf(ColumnKind kind, int a = 0, int b = 0,
                                  int c = 0) {
  return {kind, {a, b, c, 0}};
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_LINEAR_ROW_H_
