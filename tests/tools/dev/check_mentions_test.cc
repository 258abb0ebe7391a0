// tools/dev/check_mentions must fail on a name that nothing bears, wherever it
// stands in a comment.
#include <gtest/gtest.h>

#include "tests/tools/support/run_check.h"

namespace loadline::tools {
namespace {

// The script on one source that says `comment`, beside one test.
int CheckMentions(const std::string& comment) {
  return RunCheck("check_mentions",
                  {{"planner/a.cc", "int a;  // " + comment + "\n"},
                   {"tests/planner/real_test.cc", "int test;\n"}});
}

TEST(CheckMentions, AcceptsATestByItsNameOrItsPath) {
  EXPECT_EQ(CheckMentions("Tested in real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Tested in tests/planner/real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Tested in planner/real_test.cc."), 0);
  EXPECT_EQ(CheckMentions("Not tested."), 0);
}

TEST(CheckMentions, RejectsATestThatDoesNotExist) {
  const std::string gone = "gone_test";  // split: this file is checked too
  EXPECT_EQ(CheckMentions("Tested in " + gone + ".cc."), 1);
  EXPECT_EQ(CheckMentions("Tested in tests/planner/" + gone + ".cc."), 1);
  EXPECT_EQ(CheckMentions("Tested in tests/models/real" + gone + ".cc."), 1);
}

}  // namespace
}  // namespace loadline::tools
