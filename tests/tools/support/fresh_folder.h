// A folder for one test's files.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_

#include <string>

namespace loadline::tools {

// An empty folder that belongs to the running test, because ctest runs several
// at once. Call it once per test: a second call empties it again.
std::string FreshFolder();

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_
