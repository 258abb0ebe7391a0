// The report as one HTML file that needs nothing else: no network, no folder.
#ifndef LOADLINE_TOOLS_REPORT_PAGE_H_
#define LOADLINE_TOOLS_REPORT_PAGE_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// The page of tools/report/web with the document embedded. Text that is not
// UTF-8 is replaced; no name can end the element that holds it.
std::string ReportPage(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_PAGE_H_
