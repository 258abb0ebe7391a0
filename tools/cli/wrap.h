// Wraps text for a terminal of 80 columns.
#ifndef LOADLINE_TOOLS_CLI_WRAP_H_
#define LOADLINE_TOOLS_CLI_WRAP_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline::tools {

inline constexpr size_t kColumns = 80;

// Breaks at spaces; lines after the first begin with `indent` spaces. The first
// line is assumed to begin at column `indent` as well. Words longer than a line
// are not broken.
std::string Wrapped(absl::string_view text, size_t indent);

// "name          text" with the text wrapped in its own column, and a newline.
std::string WrappedRow(absl::string_view name, absl::string_view text,
                       size_t indent);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_WRAP_H_
