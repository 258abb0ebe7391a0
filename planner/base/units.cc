// Every table and message formats bytes and times with these functions. Tested
// in tests/tools/cli/units_test.cc.
#include "planner/base/units.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace loadline::planner {
namespace {

std::string ThreeDigits(double value) {
  if (value >= 99.95) return absl::StrFormat("%.0f", value);
  if (value >= 9.995) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB",
                                                        "GiB", "TiB"};
  if (bytes < 0) return "-" + FormatBytes(-bytes);
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(value), " ", kNames[unit]);
}

std::string FormatNs(int64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns >= 999'500'000) return ThreeDigits(value / 1e9) + " s";
  if (ns >= 999'500) return ThreeDigits(value / 1e6) + " ms";
  if (ns >= 1'000) return ThreeDigits(value / 1e3) + " us";
  return absl::StrCat(ns, " ns");
}

}  // namespace loadline::planner
