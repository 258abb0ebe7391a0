// See warn_of_other_programs.h. Tested in warn_of_other_programs_test.cc.
#include "tools/pipeline/warn_of_other_programs.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "tools/cli/device_names.h"

namespace loadline::tools {
namespace {

// Medians ignore less than this.
constexpr double kMuch = 0.1;

}  // namespace

std::string OtherProgramsWarning(double share, absl::string_view what,
                                 const std::string& device,
                                 const std::string& path) {
  if (share < kMuch) return "";
  return absl::StrCat(
      "other programs took ", std::lround(100 * share),
      " % of the processors while ", what,
      " measured: predicted times may be too long. To measure anew when they "
      "have ended: loadline doctor",
      device == kCpu ? "" : absl::StrCat(" --device ", device),
      path.empty() ? "" : absl::StrCat(" -o ", path));
}

void WarnOfOtherPrograms(const executor::OtherPrograms& others,
                         absl::string_view what, const std::string& device,
                         const std::string& path) {
  const std::string warning =
      OtherProgramsWarning(others.Share(), what, device, path);
  if (!warning.empty()) spdlog::warn("{}", warning);
}

}  // namespace loadline::tools
