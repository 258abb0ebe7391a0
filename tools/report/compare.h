// Two results of planning side by side, whatever documents they come from.
#ifndef LOADLINE_TOOLS_REPORT_COMPARE_H_
#define LOADLINE_TOOLS_REPORT_COMPARE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "planner/problem/problem.h"

namespace loadline::tools {

struct ComparedDecision {
  int64_t bytes = 0;
  std::string action;  // "keep"
};

// What a document says. A plan file and a report say what was decided; what
// `plan --json` and `run --json` print does not.
struct Compared {
  std::string file;
  std::string kind;  // "plan file", "report", "plan", "run"
  std::string problem;
  // By field of `plan --json` ("arena_bytes") and of `run --json` ("step_ns").
  std::map<std::string, int64_t> figures;
  std::map<std::string, ComparedDecision> decisions;  // by the value's name
};

// Reads a plan file (`problem` is what it was made for; null: none was given),
// or a document that `plan`, `run` or `report` printed with --json. Errors name
// the file: it cannot be read, is another document, lacks a figure, or is a
// plan that is not valid.
absl::StatusOr<Compared> ReadCompared(const std::string& path,
                                      const planner::Problem* problem);

// At most 80 columns. Times and bytes of b beside those of a, then the values
// about which the two decide otherwise, the largest first.
std::string CompareTable(const Compared& a, const Compared& b);
nlohmann::ordered_json CompareJson(const Compared& a, const Compared& b);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_COMPARE_H_
