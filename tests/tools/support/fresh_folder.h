// A folder for one test's files.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_

#include <string>

namespace loadline::tools {

// Empty, and of the running test alone: ctest runs several at once. Once for
// each test: a second call empties it again.
std::string FreshFolder();

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_FRESH_FOLDER_H_
