// The lead byte says how many bytes follow; overlong forms, surrogates and
// numbers above U+10FFFF are no characters. Tested in
// tests/planner/base/utf8_test.cc.
#include "planner/base/utf8.h"

#include "absl/strings/str_cat.h"

namespace loadline::planner {

int32_t TakeUtf8(absl::string_view* text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>((*text)[i]);
  };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80             ? 1
                        : (lead & 0xE0) == 0xC0 ? 2
                        : (lead & 0xF0) == 0xE0 ? 3
                        : (lead & 0xF8) == 0xF0 ? 4
                                                : 0;
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  int32_t character = length == 1 ? lead : lead & (0xFF >> (length + 1));
  bool valid = length > 0 && length <= text->size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xC0) == 0x80;
    character = character << 6 | (byte(i) & 0x3F);
  }
  valid = valid && character >= kLeast[length] && character <= 0x10FFFF &&
          (character < 0xD800 || character > 0xDFFF);
  text->remove_prefix(valid ? length : 1);
  return valid ? character : -1;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    if (TakeUtf8(&text) < 0) return false;
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const absl::string_view before = text;
    if (TakeUtf8(&text) < 0) {
      result += kReplacementCharacter;
    } else {
      absl::StrAppend(&result, before.substr(0, before.size() - text.size()));
    }
  }
  return result;
}

}  // namespace loadline::planner
