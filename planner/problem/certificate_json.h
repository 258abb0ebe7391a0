// The field `certificate` of loadline.plan/1 (docs/certificates.md).
#ifndef LOADLINE_PLANNER_PROBLEM_CERTIFICATE_JSON_H_
#define LOADLINE_PLANNER_PROBLEM_CERTIFICATE_JSON_H_

#include "absl/status/statusor.h"
#include "planner/problem/certificate.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// Checks syntax and references only; what a certificate proves is the word of
// planner/certificate/.
absl::StatusOr<Certificate> ReadCertificate(const Json& json,
                                            const Problem& problem);
void WriteCertificate(const Certificate& certificate, const Problem& problem,
                      JsonWriter& json);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_CERTIFICATE_JSON_H_
