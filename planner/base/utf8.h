// UTF-8 (RFC 3629), for names that come from files.
#ifndef LOADLINE_PLANNER_BASE_UTF8_H_
#define LOADLINE_PLANNER_BASE_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline::planner {

inline constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";  // U+FFFD

// Takes the first character off `text`, which is not empty. -1: its first byte,
// which is then taken off, begins no character.
int32_t TakeUtf8(absl::string_view* text);

bool IsUtf8(absl::string_view text);

// The text with U+FFFD for every byte that belongs to no character.
std::string ReplaceInvalidUtf8(absl::string_view text);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_UTF8_H_
