// Used by every test of tools/ that writes files.
#include "tests/tools/support/fresh_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace loadline::tools {

std::string FreshFolder() {
  const testing::TestInfo* test =
      testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      absl::StrReplaceAll(
          absl::StrCat("loadline_", test->test_suite_name(), "_", test->name()),
          {{"/", "_"}});
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

}  // namespace loadline::tools
