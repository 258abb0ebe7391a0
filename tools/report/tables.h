// The report's document as text for other places than a browser.
#ifndef LOADLINE_TOOLS_REPORT_TABLES_H_
#define LOADLINE_TOOLS_REPORT_TABLES_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// Both require what ReportDocument returns.

// One row per tensor, in the document's order: name, bytes, kind, action,
// reason, module, operator. RFC 4180, with a heading.
std::string TensorCsv(const nlohmann::ordered_json& document);

// A page for a pull request: verdict, the figures of keeping everything beside
// the plan's, the modules that hold the peak with the time of what they
// recompute, the largest tensors that were not kept, the command.
std::string ReportMarkdown(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_TABLES_H_
