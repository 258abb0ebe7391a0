// Makes certificates of bounds on the step time (planner/certificate/ checks
// them).
#ifndef LOADLINE_PLANNER_CERTIFY_CERTIFY_STEP_H_
#define LOADLINE_PLANNER_CERTIFY_CERTIFY_STEP_H_

#include <cstdint>

#include "planner/base/stop.h"
#include "planner/bound/bound.h"
#include "planner/problem/certificate.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

struct CertifyOptions {
  int64_t budget_bytes = 0;
  // Simplex iterations for all programs.
  int64_t work_limit = 15'000;
  // Ends with what is certified by then. Not deterministic.
  Stop stop;
  // Leaves of one branching tree. Each costs a solution of the linear program
  // and its rows in the file.
  int most_leaves = 256;
  // Multipliers of a whole certificate, each about 25 bytes in a file: so many,
  // or a few for each node and value of a larger problem.
  int64_t most_multipliers = 8'000;
  int64_t multipliers_per_node = 4;
};

struct CertifiedBound {
  int64_t step_ns = 0;  // what the certificate proves; INT64_MAX: no plan
  Certificate certificate;
};

// Certifies `bound` or, where its proof is too large, as much of it as the
// limits allow. Requires a valid problem. Deterministic unless stopped: limits
// count work.
CertifiedBound CertifyStep(const Problem& problem, const StepBound& bound,
                           const CertifyOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFY_CERTIFY_STEP_H_
