// tools/dev/check_mentions must fail for the name of a file that does not
// exist, in comments and in pages.
#include <gtest/gtest.h>

#include "tests/tools/support/run_check.h"

namespace loadline::tools {
namespace {

// Runs the script on one source with `comment` and one test.
int CheckMentions(const std::string& comment) {
  return RunCheck("check_mentions",
                  {{"planner/a.cc", "int a;  // " + comment + "\n"},
                   {"tests/planner/real_test.cc", "int test;\n"}});
}

// Runs the script on one page with `text` and the files that it may name.
int CheckPage(const std::string& text) {
  return RunCheck("check_mentions", {{"docs/page.md", text + "\n"},
                                     {"docs/other.md", "\n"},
                                     {"planner/base/a.cc", "int a;\n"}});
}

TEST(CheckMentions, AcceptsATestByItsNameOrItsPath) {
  EXPECT_EQ(CheckMentions("Tested in real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Tested in tests/planner/real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Tested in planner/real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Not tested."), 0);
}

TEST(CheckMentions, RejectsATestThatDoesNotExist) {
  const std::string gone = "gone_test";  // split, because this file is checked
  EXPECT_EQ(CheckMentions("Tested in " + gone + ".cc."), 1);
  EXPECT_EQ(CheckMentions("Tested in tests/planner/" + gone + ".cc."), 1);
  EXPECT_EQ(CheckMentions("Tested in tests/models/real" + gone + ".cc."), 1);
}

TEST(CheckMentions, AcceptsPathsInPagesThatExist) {
  EXPECT_EQ(CheckPage("`planner/base/a.cc`, in `planner/base/`."), 0);
  EXPECT_EQ(CheckPage("[other](other.md#top), [a](../planner/base/a.cc)"), 0);
  EXPECT_EQ(CheckPage("Add `planner/ROOM/NAME.cc`."), 0);
}

TEST(CheckMentions, RejectsPathsInPagesThatDoNotExist) {
  EXPECT_EQ(CheckPage("`planner/a.cc`"), 1);
  EXPECT_EQ(CheckPage("[gone](gone.md)"), 1);
  EXPECT_EQ(CheckPage("[a](planner/base/a.cc)"), 1);
}

}  // namespace
}  // namespace loadline::tools
