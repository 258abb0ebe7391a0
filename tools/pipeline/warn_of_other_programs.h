// Says where other programs made measured times longer: a profile is kept, and
// every later plan believes it.
#ifndef LOADLINE_TOOLS_PIPELINE_WARN_OF_OTHER_PROGRAMS_H_
#define LOADLINE_TOOLS_PIPELINE_WARN_OF_OTHER_PROGRAMS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "executor/measure/other_programs.h"

namespace loadline::tools {

// Warns if others took much of the processors since `others` was made. `what`
// was measured, for the profile of `device` at `path`; "": the device's own.
void WarnOfOtherPrograms(const executor::OtherPrograms& others,
                         absl::string_view what, const std::string& device,
                         const std::string& path);

// The warning for a share from 0 to 1; "": none is due.
std::string OtherProgramsWarning(double share, absl::string_view what,
                                 const std::string& device,
                                 const std::string& path);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_WARN_OF_OTHER_PROGRAMS_H_
