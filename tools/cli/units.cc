// Budgets must carry a unit: `--budget 3` could be bytes, gigabytes or a share,
// and a wrong guess ruins a run. Numbers are read as decimals, without floating
// point, so that the same text is the same number of bytes here and in Python.
// Tested by tests/tools/cli/units_test.cc.
#include "tools/cli/units.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fmt/format.h"

namespace loadline::tools {
namespace {

// Bytes in one of a unit; 0: not a unit.
int64_t UnitBytes(absl::string_view unit) {
  static constexpr std::array<std::pair<absl::string_view, int64_t>, 17>
      kUnits = {{{"b", 1},
                 {"kib", int64_t{1} << 10},
                 {"mib", int64_t{1} << 20},
                 {"gib", int64_t{1} << 30},
                 {"tib", int64_t{1} << 40},
                 {"k", int64_t{1} << 10},  // as ls, free and docker have them
                 {"m", int64_t{1} << 20},
                 {"g", int64_t{1} << 30},
                 {"t", int64_t{1} << 40},
                 {"ki", int64_t{1} << 10},  // as Kubernetes has them
                 {"mi", int64_t{1} << 20},
                 {"gi", int64_t{1} << 30},
                 {"ti", int64_t{1} << 40},
                 {"kb", 1'000},
                 {"mb", 1'000'000},
                 {"gb", 1'000'000'000},
                 {"tb", 1'000'000'000'000}}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return 0;
}

// A number as written: whole + part / 1e18.
struct Decimal {
  bool negative = false;
  int64_t whole = 0;
  int64_t part = 0;

  bool IsZero() const { return whole == 0 && part == 0; }
};
constexpr int64_t kDecimalParts = 1'000'000'000'000'000'000;

// More than 18 digits after the point are cut off. None: not a number, or more
// than an int64_t holds.
std::optional<Decimal> ParseDecimal(absl::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t point = std::min(text.find('.'), text.size());
  const absl::string_view whole = text.substr(0, point);
  const absl::string_view part =
      point < text.size() ? text.substr(point + 1) : absl::string_view();
  if (whole.empty() && part.empty()) return std::nullopt;
  const auto digits = [](absl::string_view all) {
    return std::all_of(all.begin(), all.end(), [](char c) {
      return absl::ascii_isdigit(static_cast<unsigned char>(c));
    });
  };
  if (!digits(whole) || !digits(part)) return std::nullopt;
  if (!whole.empty() && !absl::SimpleAtoi(whole, &number.whole)) {
    return std::nullopt;
  }
  int64_t scale = kDecimalParts;
  for (char digit : part) {
    scale /= 10;
    number.part += scale * (digit - '0');
  }
  return number;
}

// number * unit, rounded down or up; -1: too large.
int64_t Times(const Decimal& number, int64_t unit, bool up) {
  const __int128 part = static_cast<__int128>(number.part) * unit;
  const __int128 total = static_cast<__int128>(number.whole) * unit +
                         (part + (up ? kDecimalParts - 1 : 0)) / kDecimalParts;
  return total > INT64_MAX ? -1 : static_cast<int64_t>(total);
}

// Splits "1.5 MiB" into its number and its unit in lower case.
std::pair<std::string, std::string> SplitNumber(absl::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  size_t end = 0;
  while (end < stripped.size() &&
         (absl::ascii_isdigit(stripped[end]) || stripped[end] == '.' ||
          stripped[end] == '-' || stripped[end] == '+')) {
    ++end;
  }
  return {
      std::string(stripped.substr(0, end)),
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(stripped.substr(end)))};
}

}  // namespace

std::string FormatCount(int64_t count) {
  const std::string digits = absl::StrCat(count < 0 ? -count : count);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return count < 0 ? "-" + result : result;
}

std::string FormatPercent(double part, double whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

absl::StatusOr<planner::Budget> ParseBudget(absl::string_view text) {
  const auto error = [&text](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget '", text, "': ", why...));
  };
  if (absl::StripAsciiWhitespace(text) == "smallest") {
    return planner::Budget::Smallest();
  }
  const auto [number, unit] = SplitNumber(text);
  const std::optional<Decimal> value = ParseDecimal(number);
  if (!value.has_value()) {
    return error("expected a number with a unit, such as 3GiB, 3GB or 60%");
  }
  if (value->negative || value->IsZero()) return error("must be above zero");
  if (unit.empty()) {
    if (double bare = 0; absl::SimpleAtod(number, &bare) && bare < 1) {
      return error("a bare number is ambiguous; write ", 100 * bare,
                   "% (of what keeping everything takes)");
    }
    return error("a bare number is ambiguous; write ", number, "GiB, ", number,
                 "MiB, ", number, "B (bytes) or ", number,
                 "% (of what keeping everything takes)");
  }
  const bool share = unit == "%";
  const int64_t unit_bytes = share ? planner::kWholePpb / 100 : UnitBytes(unit);
  if (unit_bytes == 0) {
    return error("unknown unit '", unit,
                 "'; use B, KiB, MiB, GiB, TiB, kB, MB, GB, TB or %");
  }
  const int64_t total = Times(*value, unit_bytes, /*up=*/share);
  if (total < 0) return error("too large");
  if (total == 0) return error("must be above zero");
  return share ? planner::Budget::Share(total) : planner::Budget::Bytes(total);
}

absl::StatusOr<int64_t> ParseByteCount(absl::string_view flag,
                                       absl::string_view text) {
  const auto [number, unit] = SplitNumber(text);
  const std::optional<Decimal> value = ParseDecimal(number);
  const int64_t unit_bytes = UnitBytes(unit);
  const int64_t total = value.has_value() && !value->negative
                            ? Times(*value, unit_bytes, /*up=*/false)
                            : -1;
  if (total >= 0 && unit_bytes > 0) return total;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " '", text,
                   "': expected bytes with a unit, such as 3GiB or 500MB"));
}

absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) ||
      duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--time-limit '", text,
        "': expected a time above zero with a unit, such as 10s or 2m"));
  }
  return duration;
}

}  // namespace loadline::tools
