// Compares two planning results, from any kind of document.
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

// Contents of a document. Plan files and reports contain decisions; the output
// of `plan --json` and `run --json` does not.
struct Compared {
  std::string file;
  std::string kind;  // "plan file", "report", "plan", "run"
  std::string problem;
  // By field name of `plan --json` ("arena_bytes") and of `run --json`
  // ("step_ns").
  std::map<std::string, int64_t> figures;
  std::map<std::string, ComparedDecision> decisions;  // by the value's name
};

// Reads a plan file (`problem`: its problem file; null: none was given), or a
// document that `plan`, `run` or `report` printed with --json. Errors name the
// file: unreadable, another kind of document, a missing figure, or an invalid
// plan.
absl::StatusOr<Compared> ReadCompared(const std::string& path,
                                      const planner::Problem* problem);

// At most 80 columns wide. Times and bytes of a and b side by side, then the
// values whose decisions differ, largest first.
std::string CompareTable(const Compared& a, const Compared& b);
nlohmann::ordered_json CompareJson(const Compared& a, const Compared& b);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_COMPARE_H_
