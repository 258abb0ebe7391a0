// Numbers are checked against their element type and never rounded silently.
// Tested in tests/models/text_test.cc.
#include "models/text_cursor.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace loadline::models::text_internal {
namespace {

absl::StatusOr<int64_t> ReadInt(absl::string_view word) {
  int64_t number = 0;
  if (absl::SimpleAtoi(word, &number)) return number;
  return Wrong("\"", word, "\" is not an integer");
}

// Reads one element of `braces` and appends it to `bytes`.
template <typename T>
absl::Status AppendNumber(absl::string_view word, std::string* bytes) {
  T element{};
  if constexpr (std::is_floating_point_v<T>) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number) || !std::isfinite(number) ||
        !std::isfinite(static_cast<T>(number))) {
      return Wrong("\"", word, "\" is not a finite number");
    }
    element = static_cast<T>(number);
  } else {
    LOADLINE_ASSIGN_OR_RETURN(int64_t number, ReadInt(word));
    element = static_cast<T>(number);
    if (static_cast<int64_t>(element) != number) {
      return Wrong("\"", word, "\" is beyond its element type");
    }
  }
  bytes->append(reinterpret_cast<const char*>(&element), sizeof(T));
  return absl::OkStatus();
}

absl::Status AppendElement(DType dtype, absl::string_view word,
                           std::string* bytes) {
  switch (dtype) {
    case DType::kF32:
      return AppendNumber<float>(word, bytes);
    case DType::kF64:
      return AppendNumber<double>(word, bytes);
    case DType::kI64:
      return AppendNumber<int64_t>(word, bytes);
    case DType::kI32:
      return AppendNumber<int32_t>(word, bytes);
    case DType::kU8:
      return AppendNumber<uint8_t>(word, bytes);
    case DType::kI8:
      return AppendNumber<int8_t>(word, bytes);
    case DType::kBool:
    case DType::kF16:
    case DType::kBF16:
      return Wrong("contents of ", DTypeName(dtype), " are written as hex");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Cursor::String() {
  LOADLINE_RETURN_IF_ERROR(Expect("\""));
  size_t end = 0;
  while (end < rest_.size() && rest_[end] != '"') {
    end += rest_[end] == '\\' ? 2 : 1;
  }
  std::string text;
  if (end >= rest_.size() || !absl::CUnescape(rest_.substr(0, end), &text)) {
    return Wrong("a string does not end or has a wrong escape");
  }
  rest_.remove_prefix(end + 1);
  return text;
}

absl::StatusOr<ValueId> Cursor::Id() {
  if (Take("-")) return kNoValue;
  LOADLINE_RETURN_IF_ERROR(Expect("%"));
  const absl::string_view word = Word();
  int32_t id = 0;
  if (!absl::SimpleAtoi(word, &id) || id < 0) {
    return Wrong("\"%", word, "\" is no value");
  }
  return ValueId(id);
}

absl::StatusOr<TensorType> ReadType(Cursor& cursor) {
  return TensorTypeFromText(cursor.TypeWord());
}

absl::StatusOr<Attribute> ReadAttribute(Cursor& cursor) {
  if (cursor.Take("[")) {
    Ints list;
    LOADLINE_RETURN_IF_ERROR(ReadList(cursor, "]", [&]() -> absl::Status {
      LOADLINE_ASSIGN_OR_RETURN(int64_t number, ReadInt(cursor.Word()));
      list.push_back(number);
      return absl::OkStatus();
    }));
    return list;
  }
  if (cursor.AtString()) {
    LOADLINE_ASSIGN_OR_RETURN(std::string text, cursor.String());
    return text;
  }
  const absl::string_view word = cursor.Word();
  int64_t integer = 0;
  if (absl::SimpleAtoi(word, &integer)) return integer;
  double number = 0;
  if (absl::SimpleAtod(word, &number)) return number;
  return Wrong("\"", word, "\" is no attribute");
}

absl::StatusOr<Tensor> ReadContents(Cursor& cursor, const TensorType& type,
                                    const LargeContents& large) {
  std::string bytes;
  if (cursor.Take("hash")) {
    const std::string key(cursor.Word());
    const auto it = large.find(key);
    if (it == large.end()) return Wrong("contents ", key, " are not at hand");
    if (it->second.type != type) {
      return Wrong("contents ", key, " are ", it->second.type.ToString(),
                   ", not ", type.ToString());
    }
    return it->second;
  }
  if (cursor.Take("hex")) {
    LOADLINE_ASSIGN_OR_RETURN(std::string digits, cursor.String());
    for (char digit : digits) {
      if (!absl::ascii_isxdigit(digit)) return Wrong("not a hex digit");
    }
    if (digits.size() % 2 != 0) return Wrong("an odd number of hex digits");
    bytes = absl::HexStringToBytes(digits);
  } else {
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("{"));
    LOADLINE_RETURN_IF_ERROR(ReadList(cursor, "}", [&] {
      return AppendElement(type.dtype, cursor.Word(), &bytes);
    }));
  }
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return Wrong("contents of ", bytes.size(), " bytes, ", type.ToString(),
                 " has ", type.bytes());
  }
  return MakeTensor(type, bytes.data());
}

}  // namespace loadline::models::text_internal
