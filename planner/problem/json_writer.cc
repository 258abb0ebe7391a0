// A compact writer needs no state but one comma flag. Tested in
// tests/planner/problem/json_test.cc.
#include "planner/problem/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/utf8.h"

namespace loadline::planner {
namespace {

// Python's repr of a finite double: fixed notation for exponents from -4 to
// 15, scientific with at least two exponent digits beyond.
std::string ShortestDecimal(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 std::chars_format::scientific);
  const std::string scientific(buffer, end.ptr);
  const size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  const bool negative = scientific[0] == '-';
  std::string digits;
  for (char c : scientific.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string result = negative ? "-" : "";
  if (exponent < 0) {
    absl::StrAppend(&result, "0.", std::string(-exponent - 1, '0'), digits);
    return result;
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  absl::StrAppend(&result, digits.substr(0, whole), ".",
                  digits.size() > whole ? digits.substr(whole) : "0");
  return result;
}

}  // namespace

void JsonWriter::Separate() {
  if (need_comma_) text_.push_back(',');
  if (need_line_) text_.push_back('\n');
  need_comma_ = false;
  need_line_ = false;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_.push_back(bracket);
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  if (need_line_) text_.push_back('\n');
  need_line_ = false;
  text_.push_back(bracket);
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view name) {
  Separate();
  AppendString(name);
  text_.push_back(':');
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::fabs(value) < kExact) {
    return Int(static_cast<int64_t>(value));
  }
  Separate();
  absl::StrAppend(&text_, ShortestDecimal(value));
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  absl::StrAppend(&text_, value ? "true" : "false");
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  absl::StrAppend(&text_, "null");
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  Separate();
  AppendString(value);
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Line() {
  need_line_ = true;
  return *this;
}

void JsonWriter::AppendString(absl::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  // What is written must be readable: names may come from anywhere.
  std::string valid;
  if (!IsUtf8(value)) {
    valid = ReplaceInvalidUtf8(value);
    value = valid;
  }
  text_.push_back('"');
  for (char c : value) {
    switch (c) {
      case '"':
        absl::StrAppend(&text_, "\\\"");
        break;
      case '\\':
        absl::StrAppend(&text_, "\\\\");
        break;
      case '\b':
        absl::StrAppend(&text_, "\\b");
        break;
      case '\f':
        absl::StrAppend(&text_, "\\f");
        break;
      case '\n':
        absl::StrAppend(&text_, "\\n");
        break;
      case '\r':
        absl::StrAppend(&text_, "\\r");
        break;
      case '\t':
        absl::StrAppend(&text_, "\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppend(&text_, "\\u00");
          text_.push_back(kHex[c >> 4]);
          text_.push_back(kHex[c & 15]);
        } else {
          text_.push_back(c);
        }
    }
  }
  text_.push_back('"');
}

}  // namespace loadline::planner
