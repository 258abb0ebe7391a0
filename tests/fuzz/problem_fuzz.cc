// libFuzzer: any bytes as a problem file. Nothing may crash, and a problem that
// can be read must be written with the same bytes each time. Seeds in
// corpus/problem.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "planner/base/check.h"
#include "planner/problem/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline::planner;
  const auto problem = ProblemFromJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!problem.ok()) return 0;
  const std::string text = ProblemToJson(*problem);
  const auto again = ProblemFromJson(text);
  LOADLINE_CHECK(again.ok());
  LOADLINE_CHECK(ProblemToJson(*again) == text);
  return 0;
}
