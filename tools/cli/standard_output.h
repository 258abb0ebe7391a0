// Results on stdout.
#ifndef LOADLINE_TOOLS_CLI_STANDARD_OUTPUT_H_
#define LOADLINE_TOOLS_CLI_STANDARD_OUTPUT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fmt/format.h"

namespace loadline::tools {

// The text for a terminal. Names come from files: control characters except
// newline and tab become \u00XX, as JSON writes them, so that a terminal shows
// them instead of obeying, and bytes that are not UTF-8 become U+FFFD.
std::string Printable(absl::string_view text);

// Writes a printable result to stdout. An error is kept for
// FlushStandardOutput.
void PrintText(absl::string_view text);

// The same with fmt's format string.
template <typename... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  PrintText(fmt::format(format, std::forward<Args>(args)...));
}

// Writes a file's bytes as they are.
void WriteToStandardOutput(absl::string_view bytes);

// Writes what is still buffered. ResourceExhausted (a full disk) or Unavailable
// if this write failed, or one since the last call.
absl::Status FlushStandardOutput();

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_STANDARD_OUTPUT_H_
