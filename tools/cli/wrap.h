// Text that fits a terminal of 80 columns.
#ifndef LOADLINE_TOOLS_CLI_WRAP_H_
#define LOADLINE_TOOLS_CLI_WRAP_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline::tools {

inline constexpr size_t kColumns = 80;

// Broken at spaces; lines after the first begin with `indent` spaces. The first
// line is taken to begin at column `indent` too. A word that is longer than a
// line stays whole.
std::string Wrapped(absl::string_view text, size_t indent);

// "name          text", the text wrapped beside the name, and a line end.
std::string WrappedRow(absl::string_view name, absl::string_view text,
                       size_t indent);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_WRAP_H_
