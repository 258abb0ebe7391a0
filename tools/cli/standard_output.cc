// Tested by tests/tools/cli/standard_output_test.cc.
#include "tools/cli/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/utf8.h"

namespace loadline::tools {
namespace {

// Characters that a terminal obeys instead of showing: controls of ASCII and
// Latin-1, and those that reverse the direction of what follows.
bool IsControl(int32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0) ||
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// errno of the first write that failed; stdio only keeps that one did.
int first_error = 0;

}  // namespace

std::string Printable(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const absl::string_view before = text;
    const int32_t c = planner::TakeUtf8(&text);
    if (c < 0) {
      result += planner::kReplacementCharacter;
    } else if (IsControl(c)) {
      result += fmt::format("\\u{:04x}", c);
    } else {
      absl::StrAppend(&result, before.substr(0, before.size() - text.size()));
    }
  }
  return result;
}

void WriteToStandardOutput(absl::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) < bytes.size() &&
      first_error == 0) {
    first_error = errno;
  }
}

void PrintText(absl::string_view text) {
  WriteToStandardOutput(Printable(text));
}

absl::Status FlushStandardOutput() {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0;
  if (first_error == 0) first_error = errno;
  const int error = std::exchange(first_error, 0);
  if (!failed && std::ferror(stdout) == 0) return absl::OkStatus();
  std::clearerr(stdout);
  const std::string text =
      absl::StrCat("standard output: ",
                   error == 0 ? "cannot be written" : std::strerror(error));
  return error == ENOSPC || error == EDQUOT || error == EFBIG
             ? absl::ResourceExhaustedError(text)
             : absl::UnavailableError(text);
}

}  // namespace loadline::tools
