// Tested by tests/tools/cli/wrap_test.cc.
#include "tools/cli/wrap.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace loadline::tools {

std::string Wrapped(absl::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
    if (!out.empty() && column + 1 + word.size() > kColumns) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  return out;
}

std::string WrappedRow(absl::string_view name, absl::string_view text,
                       size_t indent) {
  std::string out(name);
  // A name that is too long is put on a line of its own.
  if (name.size() + 1 > indent) {
    absl::StrAppend(&out, "\n", std::string(indent, ' '));
  } else {
    out.resize(indent, ' ');
  }
  return absl::StrCat(out, Wrapped(text, indent), "\n");
}

}  // namespace loadline::tools
