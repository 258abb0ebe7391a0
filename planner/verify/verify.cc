// The definition of *valid* in docs/formats.md, rule by rule, plainly. Tested
// in tests/planner/verify/verify_test.cc, verify_buffers_test.cc and
// verify_steps_test.cc (each rule by a minimal plan that breaks it) and
// verify_corruption_test.cc (thousands of seeded corruptions).
#include "planner/verify/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "planner/certificate/check_certificate.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/replay.h"
#include "planner/verify/verify_facts.h"
#include "planner/verify/verify_parts.h"

namespace loadline::planner {
namespace {

absl::Status CheckHeader(const Problem& problem, const Plan& plan) {
  if (plan.problem_name != problem.name) {
    return Invalid("the plan is for problem '", plan.problem_name, "', not '",
                   problem.name, "'");
  }
  if (!IsProblemSha256(problem, plan.problem_sha256)) {
    return Invalid("the plan is for a problem with sha256 '",
                   plan.problem_sha256, "', not ", ProblemSha256(problem));
  }
  if (plan.arena_bytes < 0 || plan.host_bytes < 0) {
    return Invalid("arena_bytes or host_bytes is negative");
  }
  if (plan.arena_bytes > plan.budget_bytes) {
    return Invalid("arena_bytes ", plan.arena_bytes, " exceeds budget_bytes ",
                   plan.budget_bytes);
  }
  const int64_t host_limit =
      problem.machine.has_value() ? problem.machine->host_bytes : 0;
  if (plan.host_bytes > host_limit) {
    return Invalid("host_bytes ", plan.host_bytes,
                   " exceeds the machine's host_bytes ", host_limit);
  }
  return absl::OkStatus();
}

absl::Status CheckRuns(const Problem& problem, const Plan& plan) {
  std::vector<int64_t> runs(problem.nodes.size(), 0);
  std::vector<NodeId> sequence;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kNode) continue;
    ++runs[Index(step.node)];
    sequence.push_back(step.node);
  }
  for (size_t n = 0; n < runs.size(); ++n) {
    const std::string name = NodeName(problem, NodeId(static_cast<int32_t>(n)));
    if (runs[n] == 0) return Invalid(name, " never runs");
    if (runs[n] > 1 && !problem.nodes[n].recompute) {
      return Invalid(name, " runs ", runs[n], " times, but may run only once");
    }
  }
  if (plan.sequence == sequence) return absl::OkStatus();
  const size_t both = std::min(plan.sequence.size(), sequence.size());
  const auto differ = std::mismatch(sequence.begin(), sequence.begin() + both,
                                    plan.sequence.begin());
  return Invalid("sequence differs from the compute steps at position ",
                 differ.first - sequence.begin());
}

absl::Status CheckEnd(const PlanFacts& facts) {
  for (const std::string& missing : facts.missing_at_end) {
    if (!missing.empty()) return Invalid(missing);
  }
  return absl::OkStatus();
}

absl::Status CheckDecisions(const Problem& problem, const Plan& plan) {
  std::vector<bool> decided(problem.values.size(), false);
  for (size_t d = 0; d < plan.decisions.size(); ++d) {
    const Decision& decision = plan.decisions[d];
    if (Index(decision.value) >= problem.values.size()) {
      return Invalid("decision ", d, " is about no value");
    }
    const int action = static_cast<int>(decision.action);
    if (action < 0 || action > static_cast<int>(Action::kStash)) {
      return Invalid("decision ", d, " takes no known action");
    }
    if (decided[Index(decision.value)]) {
      return Invalid("decision ", d, " is a second one about ",
                     ValueName(problem, decision.value));
    }
    decided[Index(decision.value)] = true;
  }
  return absl::OkStatus();
}

// Shares of the error that a plan may make. A value that is encoded again by
// the same codec gets the same bits, so a codec of a value counts once. The sum
// has a rounding error.
absl::Status CheckErrors(const Problem& problem, const Plan& plan) {
  std::set<std::pair<size_t, std::string>> used;
  double sum = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kEncode) continue;
    const ValueId value = plan.buffer(step.from).value;
    if (!used.emplace(Index(value), step.codec).second) continue;
    const Codec* codec = FindCodec(problem.value(value), step.codec);
    if (codec != nullptr) sum += codec->error;
  }
  if (sum <= 1 + 1e-9) return absl::OkStatus();
  return Invalid("the errors of its codecs add up to ", sum,
                 ", more than all that a plan may make, 1");
}

// One part in a million, and at least one unit for rounding.
double Tolerance(int64_t actual) {
  return std::max(1.0, 1e-6 * std::fabs(static_cast<double>(actual)));
}

// Plans made before step times counted the overhead of copies say less.
std::string OverheadHint(const Problem& problem, absl::string_view name) {
  if (!problem.machine.has_value() || problem.machine->copy_overhead_ns == 0 ||
      (name != "step_ns" && name != "stall_ns")) {
    return "";
  }
  return absl::StrCat(", which counts the machine's ",
                      problem.machine->copy_overhead_ns,
                      " ns of overhead for each copy");
}

absl::Status CheckPredicted(const Problem& problem, const Prediction& said,
                            const Prediction& actual) {
  const struct {
    absl::string_view name;
    int64_t said;
    int64_t actual;
  } rows[] = {
      {"step_ns", said.step_ns, actual.step_ns},
      {"compute_ns", said.compute_ns, actual.compute_ns},
      {"recompute_ns", said.recompute_ns, actual.recompute_ns},
      {"d2h_bytes", said.d2h_bytes, actual.d2h_bytes},
      {"h2d_bytes", said.h2d_bytes, actual.h2d_bytes},
      {"stall_ns", said.stall_ns, actual.stall_ns},
      {"peak_bytes", said.peak_bytes, actual.peak_bytes},
  };
  for (const auto& row : rows) {
    const double difference =
        static_cast<double>(row.said) - static_cast<double>(row.actual);
    if (std::fabs(difference) > Tolerance(row.actual)) {
      return Invalid("predicted.", row.name, " is ", row.said,
                     ", but the replay gives ", row.actual,
                     OverheadHint(problem, row.name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const Bounds& bounds, const Prediction& actual) {
  const auto above = [](int64_t bound, int64_t reached) {
    return bound < 0 || static_cast<double>(bound) >
                            static_cast<double>(reached) + Tolerance(reached);
  };
  if (above(bounds.peak_bytes, actual.peak_bytes)) {
    return Invalid("bounds.peak_bytes ", bounds.peak_bytes,
                   " is no bound: the plan reaches ", actual.peak_bytes);
  }
  if (above(bounds.step_ns, actual.step_ns)) {
    return Invalid("bounds.step_ns ", bounds.step_ns,
                   " is no bound: the plan reaches ", actual.step_ns);
  }
  return absl::OkStatus();
}

// Bounds that a certificate comes with are what it proves, or less.
absl::Status CheckCertificate(const Problem& problem, const Plan& plan) {
  if (!plan.certificate) return absl::OkStatus();
  const absl::StatusOr<int64_t> step_ns =
      CertifiedStepNs(problem, plan.budget_bytes, *plan.certificate);
  if (!step_ns.ok()) return Invalid(step_ns.status().message());
  if (plan.bounds.step_ns > *step_ns) {
    return Invalid("bounds.step_ns is ", plan.bounds.step_ns,
                   ", but the certificate proves ", *step_ns);
  }
  const int64_t peak_bytes = CertifiedPeakBytes(problem);
  if (plan.bounds.peak_bytes > peak_bytes) {
    return Invalid("bounds.peak_bytes is ", plan.bounds.peak_bytes,
                   ", but what must be on the device at one moment is ",
                   peak_bytes);
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const Problem& problem, const Plan& plan,
                          const PlanFacts& facts) {
  LOADLINE_ASSIGN_OR_RETURN(const ReplayResult result,
                            ReplaySteps(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(
      CheckPredicted(problem, plan.predicted, result.prediction));
  LOADLINE_RETURN_IF_ERROR(CheckBounds(plan.bounds, result.prediction));
  if (problem.addresses) return absl::OkStatus();
  if (plan.arena_bytes != result.prediction.peak_bytes) {
    return Invalid("arena_bytes ", plan.arena_bytes,
                   " is not the peak of live bytes, ",
                   result.prediction.peak_bytes);
  }
  if (plan.host_bytes < result.host_peak_bytes) {
    return Invalid("host_bytes ", plan.host_bytes,
                   " is less than the host buffers alive at once, ",
                   result.host_peak_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Problem& problem, const Plan& plan) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  LOADLINE_RETURN_IF_ERROR(CheckHeader(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckReferences(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckPlaces(problem, plan));
  LOADLINE_ASSIGN_OR_RETURN(const PlanFacts facts, GatherFacts(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckInitialBuffers(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(CheckSteps(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(CheckRuns(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckReadsAfterWrite(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(CheckOverlaps(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(CheckEnd(facts));
  LOADLINE_RETURN_IF_ERROR(CheckDecisions(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckErrors(problem, plan));
  LOADLINE_RETURN_IF_ERROR(CheckNumbers(problem, plan, facts));
  return CheckCertificate(problem, plan);
}

}  // namespace loadline::planner
