// Runs the source checks of tools/dev on a tree made for one test.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_

#include <map>
#include <string>

namespace loadline::tools {

// Exit status of tools/dev/`script` on a tree of files, given as path to text.
int RunCheck(const std::string& script,
             const std::map<std::string, std::string>& files);

// Standard output of the same.
std::string CheckOutput(const std::string& script,
                        const std::map<std::string, std::string>& files);

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_RUN_CHECK_H_
