// Where a test puts its files. Tests run side by side: none sees a file of
// another.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_TEST_FOLDER_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_TEST_FOLDER_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace loadline {

// An empty folder of the running test, or one named `name` in it. A second call
// with the same name empties it again.
inline std::string EmptyTestFolder(const std::string& name = "") {
  const testing::TestInfo* test =
      testing::UnitTest::GetInstance()->current_test_info();
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      absl::StrReplaceAll(
          absl::StrCat("loadline_", test->test_suite_name(), "_", test->name()),
          {{"/", "_"}});
  if (!name.empty()) folder /= name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

}  // namespace loadline

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_TEST_FOLDER_H_
