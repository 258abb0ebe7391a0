// Tested in tests/tools/cli/number_checks_test.cc.
#include "tools/cli/number_checks.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace loadline::tools {
namespace {

template <typename Holds>
std::string Check(const std::string& text, absl::string_view what,
                  const Holds& holds) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number) &&
      holds(number)) {
    return "";
  }
  return absl::StrCat("must be a number ", what, ", not '", text, "'");
}

}  // namespace

std::string CheckPositive(const std::string& text) {
  return Check(text, "above 0", [](double number) { return number > 0; });
}

std::string CheckNonNegative(const std::string& text) {
  return Check(text, "that is at least 0",
               [](double number) { return number >= 0; });
}

std::string CheckSeed(const std::string& text) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return "";
  return absl::StrCat("must be a whole number from 0 to ",
                      std::numeric_limits<uint64_t>::max(), ", not '", text,
                      "'");
}

std::string CheckShare(const std::string& text) {
  return Check(text, "from 0 to 1",
               [](double number) { return number >= 0 && number <= 1; });
}

}  // namespace loadline::tools
