// Budgets must have a unit: `--budget 3` could mean bytes, gigabytes or a
// share, and a wrong guess would ruin the run. Tested by
// tests/tools/cli/units_test.cc.
#include "tools/cli/units.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fmt/format.h"

namespace loadline::tools {
namespace {

// Bytes per unit; 0: not a unit.
double UnitBytes(absl::string_view unit) {
  static constexpr std::array<std::pair<absl::string_view, double>, 9> kUnits =
      {{{"b", 1.0},
        {"kib", 1024.0},
        {"mib", 1048576.0},
        {"gib", 1073741824.0},
        {"tib", 1099511627776.0},
        {"kb", 1e3},
        {"mb", 1e6},
        {"gb", 1e9},
        {"tb", 1e12}}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return 0;
}

// Splits "1.5 MiB" into its number and its lower-case unit.
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

int64_t Budget::Of(int64_t whole_bytes) const {
  if (percent == 0) return bytes;
  return static_cast<int64_t>(
      std::ceil(percent / 100 * static_cast<double>(whole_bytes)));
}

absl::StatusOr<Budget> ParseBudget(absl::string_view text) {
  const auto [number, unit] = SplitNumber(text);
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget '", text,
                     "': expected a number with a unit, such as 3GiB, 3GB or "
                     "60%"));
  }
  if (value <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget '", text, "': must be above zero"));
  }
  if (unit.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--budget '", text, "': a bare number is ambiguous; write ", number,
        "GiB, ", number, "MiB or ", number,
        "% (of what keeping everything takes)"));
  }
  Budget budget;
  if (unit == "%") {
    budget.percent = value;
    return budget;
  }
  const double unit_bytes = UnitBytes(unit);
  if (unit_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget '", text, "': unknown unit '", unit,
                     "'; use B, KiB, MiB, GiB, TiB, kB, MB, GB, TB or %"));
  }
  const double bytes = value * unit_bytes;
  if (bytes >= 9.0e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget '", text, "': too large"));
  }
  budget.bytes = static_cast<int64_t>(bytes);
  return budget;
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
