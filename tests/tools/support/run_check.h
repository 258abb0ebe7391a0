// The checks of sources, on a tree made for one test.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_

#include <map>
#include <string>

namespace loadline::tools {

// The exit status of tools/dev/`script` on a tree of these files, path to text.
int RunCheck(const std::string& script,
             const std::map<std::string, std::string>& files);

// The same script's standard output.
std::string CheckOutput(const std::string& script,
                        const std::map<std::string, std::string>& files);

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_
