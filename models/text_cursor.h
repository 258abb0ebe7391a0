// Tokens of the text form of a Graph: words, strings, ids, types, lists,
// attributes, contents. models/text_reader.cc combines them.
#ifndef LOADLINE_MODELS_TEXT_CURSOR_H_
#define LOADLINE_MODELS_TEXT_CURSOR_H_

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/attributes.h"
#include "models/text.h"
#include "models/types.h"
#include "planner/base/status_macros.h"

namespace loadline::models::text_internal {

// InvalidArgument with the concatenated parts as its message.
template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The rest of one line. Words end at spaces and punctuation.
class Cursor {
 public:
  explicit Cursor(absl::string_view rest) : rest_(rest) {}

  bool AtEnd() {
    SkipSpaces();
    return rest_.empty();
  }

  // Consumes `token` if it comes next.
  bool Take(absl::string_view token) {
    SkipSpaces();
    if (!absl::StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  absl::Status Expect(absl::string_view token) {
    if (Take(token)) return absl::OkStatus();
    return Wrong("expected \"", token, "\" before \"", rest_.substr(0, 20),
                 "\"");
  }

  bool AtString() {
    SkipSpaces();
    return absl::StartsWith(rest_, "\"");
  }

  absl::string_view Word() { return TakeUntil(" ,(){}[]="); }
  // Like a word, but a type contains commas.
  absl::string_view TypeWord() {
    SkipSpaces();
    const size_t close = rest_.find(']');
    const size_t size =
        close == absl::string_view::npos ? rest_.size() : close + 1;
    const absl::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  // Escaped as in C, in double quotes.
  absl::StatusOr<std::string> String();
  // "%7", or "-" for kNoValue.
  absl::StatusOr<ValueId> Id();

 private:
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view TakeUntil(absl::string_view ends) {
    SkipSpaces();
    const size_t size = std::min(rest_.find_first_of(ends), rest_.size());
    const absl::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  absl::string_view rest_;
};

// A comma-separated list up to `close`; its opening bracket is already
// consumed.
template <typename ReadItem>
absl::Status ReadList(Cursor& cursor, absl::string_view close,
                      ReadItem read_item) {
  if (cursor.Take(close)) return absl::OkStatus();
  do {
    LOADLINE_RETURN_IF_ERROR(read_item());
  } while (cursor.Take(","));
  return cursor.Expect(close);
}

absl::StatusOr<TensorType> ReadType(Cursor& cursor);
absl::StatusOr<Attribute> ReadAttribute(Cursor& cursor);

// Contents of `type`: numbers in braces, hex, or the hash of an entry of
// `large`.
absl::StatusOr<Tensor> ReadContents(Cursor& cursor, const TensorType& type,
                                    const LargeContents& large);

}  // namespace loadline::models::text_internal

#endif  // LOADLINE_MODELS_TEXT_CURSOR_H_
