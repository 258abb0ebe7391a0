// A small recursive-descent parser for the Python literal in an .npy header.
// The input is untrusted: lengths are checked before use and products against
// overflow. Tested in tests/executor/files/npy_header_test.cc.
#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "executor/files/npy.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

constexpr size_t kMostHeaderBytes = 65536;
constexpr size_t kMaxRank = 32;

absl::Status BadHeader(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("npy header: ", what));
}

// Parses the dictionary's text from left to right.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // 'text' or "text", without escapes.
  std::optional<std::string> TakeString() {
    const char quote = Take('\'') ? '\'' : Take('"') ? '"' : '\0';
    if (quote == '\0') return std::nullopt;
    const size_t end = text_.find(quote, at_);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    if (s.find('\\') != std::string::npos) return std::nullopt;
    return s;
  }

  // A decimal number >= 0 that fits int64.
  std::optional<int64_t> TakeInt() {
    SkipSpace();
    int64_t n = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && std::isdigit(Byte(at_)); ++at_) {
      const int digit = text_[at_] - '0';
      if (n > (std::numeric_limits<int64_t>::max() - digit) / 10) {
        return std::nullopt;
      }
      n = n * 10 + digit;
    }
    if (at_ == begin) return std::nullopt;
    return n;
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }

 private:
  unsigned char Byte(size_t i) const {
    return static_cast<unsigned char>(text_[i]);
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
  }

  absl::string_view text_;
  size_t at_ = 0;
};

absl::Status ReadDescr(const std::string& descr, NpyHeader* header) {
  using models::DType;
  static constexpr struct {
    const char* descr;
    DType dtype;
    int64_t narrow_bytes = 0;
    bool narrow_signed = false;
  } kKnown[] = {{"<f4", DType::kF32},         {"<f8", DType::kF64},
                {"<f2", DType::kF16},         {"<i8", DType::kI64},
                {"<i4", DType::kI32},         {"|u1", DType::kU8},
                {"|i1", DType::kI8},          {"|b1", DType::kBool},
                {"<u2", DType::kI32, 2},      {"<u4", DType::kI64, 4},
                {"<i2", DType::kI32, 2, true}};
  for (const auto& known : kKnown) {
    if (descr != known.descr) continue;
    header->dtype = known.dtype;
    header->narrow_bytes = known.narrow_bytes;
    header->narrow_signed = known.narrow_signed;
    return absl::OkStatus();
  }
  return BadHeader(absl::StrCat(
      "dtype '", descr.substr(0, 40),
      "' is not one of <f2 <f4 <f8 <i2 <i4 <i8 <u2 <u4 |i1 |u1 |b1; "
      "convert with astype before saving"));
}

absl::StatusOr<std::vector<int64_t>> ReadShape(Reader& reader) {
  std::vector<int64_t> shape;
  if (!reader.Take('(')) return BadHeader("shape is not a tuple");
  bool comma = true;
  while (!reader.Take(')')) {
    if (!comma) return BadHeader("shape lacks a comma");
    const std::optional<int64_t> dim = reader.TakeInt();
    if (!dim.has_value())
      return BadHeader("shape holds no non-negative number");
    if (shape.size() == kMaxRank) return BadHeader("more than 32 dimensions");
    shape.push_back(*dim);
    comma = reader.Take(',');
  }
  if (shape.size() == 1 && !comma) return BadHeader("shape is not a tuple");
  return shape;
}

absl::Status ReadDictionary(absl::string_view text, NpyHeader* header) {
  Reader reader(text);
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  if (!reader.Take('{')) return BadHeader("no dictionary");
  bool comma = true;
  while (!reader.Take('}')) {
    if (!comma) return BadHeader("the dictionary lacks a comma");
    const std::optional<std::string> key = reader.TakeString();
    if (!key.has_value() || !reader.Take(':')) return BadHeader("no key");
    if (*key == "descr" && !has_descr) {
      has_descr = true;
      const std::optional<std::string> descr = reader.TakeString();
      if (!descr.has_value()) {
        return BadHeader("descr is not a plain dtype (a structured array?)");
      }
      LOADLINE_RETURN_IF_ERROR(ReadDescr(*descr, header));
    } else if (*key == "fortran_order" && !has_order) {
      has_order = true;
      if (reader.TakeWord("True")) {
        return BadHeader("Fortran order; save numpy.ascontiguousarray(array)");
      }
      if (!reader.TakeWord("False"))
        return BadHeader("fortran_order is no bool");
    } else if (*key == "shape" && !has_shape) {
      has_shape = true;
      LOADLINE_ASSIGN_OR_RETURN(header->shape, ReadShape(reader));
    } else {
      return BadHeader(
          absl::StrCat("unexpected key '", key->substr(0, 40), "'"));
    }
    comma = reader.Take(',');
  }
  if (!has_descr || !has_order || !has_shape) {
    return BadHeader("descr, fortran_order or shape is missing");
  }
  if (!reader.AtEnd()) return BadHeader("something follows the dictionary");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> bytes) {
  static constexpr uint8_t kMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (bytes.size() < 10 ||
      !std::equal(std::begin(kMagic), std::end(kMagic), bytes.begin())) {
    return BadHeader("not a NumPy array (no magic)");
  }
  const int major = bytes[6];
  if (major < 1 || major > 3 || bytes[7] != 0) {
    return BadHeader(absl::StrCat("format version ", major, ".",
                                  static_cast<int>(bytes[7]), " is unknown"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  if (bytes.size() < begin) return BadHeader("cut short");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(bytes[8 + i]) << (8 * i);
  }
  if (length > kMostHeaderBytes) return BadHeader("longer than 64 KiB");
  if (bytes.size() - begin < length) return BadHeader("cut short");

  NpyHeader header;
  LOADLINE_RETURN_IF_ERROR(ReadDictionary(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()) + begin,
                        length),
      &header));
  absl::StatusOr<models::TensorType> type =
      models::MakeTensorType(header.dtype, header.shape);
  if (!type.ok()) return BadHeader(type.status().message());
  header.header_bytes = static_cast<int64_t>(begin + length);
  header.data_bytes = header.narrow_bytes > 0
                          ? type->elements() * header.narrow_bytes
                          : type->bytes();
  return header;
}

}  // namespace loadline::executor
