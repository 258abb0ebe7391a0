// What a certificate proves, in exact integer arithmetic, from the problem
// alone. docs/certificates.md is this as text.
#ifndef LOADLINE_PLANNER_CERTIFICATE_CHECK_CERTIFICATE_H_
#define LOADLINE_PLANNER_CERTIFICATE_CHECK_CERTIFICATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/certificate/part_facts.h"
#include "planner/certificate/problem_facts.h"
#include "planner/problem/certificate.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// No valid plan of the problem within the budget has a shorter predicted step.
// INT64_MAX: there is no such plan. Errors: InvalidArgument that names a row
// that does not hold, a tree that is not one, or a number that overflows.
// Requires a valid problem.
absl::StatusOr<int64_t> CertifiedStepNs(const Problem& problem,
                                        int64_t budget_bytes,
                                        const Certificate& certificate);

// No valid plan of the problem has a lower peak. Needs no certificate: what one
// node, the start or the end has on the device can be added up again.
int64_t CertifiedPeakBytes(const Problem& problem);

// The parts of the above, for makers of certificates.

// Are the arguments in range? Errors name the row.
absl::Status CheckArguments(const PartFacts& part, const CertificateRow& row);

// A branched column and the value it has on the way to a leaf.
struct FixedColumn {
  CertificateColumn column;
  int value = 0;
};

// Ticks beyond the first runs of all nodes that the rows prove, a quotient
// rounded up; INT64_MAX: no plan; never negative.
absl::StatusOr<int64_t> ProvenTicks(const PartFacts& part, int64_t budget_bytes,
                                    const std::vector<CertificateRow>& rows,
                                    const std::vector<FixedColumn>& fixed);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_CERTIFICATE_CHECK_CERTIFICATE_H_
