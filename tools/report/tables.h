// The report's document as CSV and Markdown.
#ifndef LOADLINE_TOOLS_REPORT_TABLES_H_
#define LOADLINE_TOOLS_REPORT_TABLES_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// Both require a document made by ReportDocument.

// One row per tensor, in the document's order: name, bytes, kind, action,
// reason, module, operator. RFC 4180, with a heading.
std::string TensorCsv(const nlohmann::ordered_json& document);

// A page for a pull request: verdict, figures of keeping everything and of the
// plan, the modules with the most bytes at the peak and their recomputation
// time, the largest tensors that were not kept, the command.
std::string ReportMarkdown(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_TABLES_H_
