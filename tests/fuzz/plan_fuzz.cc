// libFuzzer: any bytes as a problem file and a plan file, split at the first
// line end. Verify and Replay must not crash on anything that can be read.
// Seeds in corpus/plan.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "planner/base/check.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline::planner;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  if (line == absl::string_view::npos) return 0;
  const auto problem = ProblemFromJson(text.substr(0, line));
  if (!problem.ok()) return 0;
  auto plan = PlanFromJson(text.substr(line + 1), *problem);
  if (!plan.ok()) return 0;
  // Set the right hash, so that later rules are reached.
  plan->problem_sha256 = ProblemSha256(*problem);
  const auto prediction = Replay(*problem, *plan);
  const absl::Status verdict = Verify(*problem, *plan);
  // A valid plan must replay.
  LOADLINE_CHECK(!verdict.ok() || prediction.ok());
  return 0;
}
