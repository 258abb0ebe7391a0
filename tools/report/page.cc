// The page is assembled when Loadline is built (tools/report/web/assemble) and
// is part of the program; only the document is inserted here. Tested by
// tests/tools/report/report_document_test.cc, and in a browser by
// tests/browser.
#include "tools/report/page.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "planner/base/check.h"
#include "tools/cli/json_text.h"

// Embedded by the assembler: a megabyte literal would cost the compiler
// seconds.
asm(".section .rodata\n"
    "loadline_report_page_begin:\n"
    ".incbin \"" LOADLINE_REPORT_PAGE
    "\"\n"
    "loadline_report_page_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char loadline_report_page_begin[];
extern "C" const char loadline_report_page_end[];

namespace loadline::tools {
namespace {

constexpr absl::string_view kDataMark = "{{data}}";

}  // namespace

std::string ReportPage(const nlohmann::ordered_json& document) {
  const absl::string_view page(loadline_report_page_begin,
                               static_cast<size_t>(loadline_report_page_end -
                                                   loadline_report_page_begin));
  const size_t mark = page.rfind(kDataMark);
  LOADLINE_CHECK(mark != absl::string_view::npos);
  // In JSON "<" occurs only in strings, where \u003c is equivalent.
  const std::string data =
      absl::StrReplaceAll(JsonText(document), {{"<", "\\u003c"}});
  std::string out(page.substr(0, mark));
  out += data;
  out += std::string(page.substr(mark + kDataMark.size()));
  return out;
}

}  // namespace loadline::tools
