// libFuzzer: any bytes as a machine profile. Nothing may crash, and a profile
// that can be read must be written with the same bytes each time, as a file and
// inside a problem. Seeds in corpus/machine.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "planner/base/check.h"
#include "planner/problem/machine.h"
#include "planner/problem/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline::planner;
  const auto machine = MachineFromJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!machine.ok()) return 0;
  const std::string text = MachineToJson(*machine);
  const auto again = MachineFromJson(text);
  LOADLINE_CHECK(again.ok());
  LOADLINE_CHECK(MachineToJson(*again) == text);

  Problem problem;
  problem.machine = *machine;
  const std::string canonical = ProblemToJson(problem);
  const auto read = ProblemFromJson(canonical);
  LOADLINE_CHECK(read.ok());
  LOADLINE_CHECK(ProblemToJson(*read) == canonical);
  return 0;
}
