// The report as one self-contained HTML file.
#ifndef LOADLINE_TOOLS_REPORT_PAGE_H_
#define LOADLINE_TOOLS_REPORT_PAGE_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// The page of tools/report/web with the document embedded. Replaces text that
// is not UTF-8; no name can end the element that contains the document.
std::string ReportPage(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_PAGE_H_
