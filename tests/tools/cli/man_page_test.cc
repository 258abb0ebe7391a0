// The page contains every verb and flag, escaped for roff.
#include "tools/cli/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/support/in_process.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;

TEST(ManPage, HasEveryVerbItsFlagsAndTheExitCodes) {
  const std::string page = RunInProcess({"man"}).out;
  EXPECT_THAT(page, testing::StartsWith(".TH LOADLINE 1 "));
  EXPECT_THAT(page, HasSubstr(".SS \"loadline run model [flags]\"\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"loadline verify problem plan [flags]\""));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o, \\-\\-output FILE\\fR\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-nesterov\\fR\n"));  // a rare flag
  EXPECT_THAT(page, HasSubstr("\\fB130\\fR\ninterrupted\n"));
}

TEST(ManPage, HidesWhatRoffWouldObey) {
  VerbHelp verb;
  verb.name = "go";
  verb.text = ".not a request";
  verb.example = "a \\ b";
  const std::string page = ManPage({verb}, "1.0");
  EXPECT_THAT(page, HasSubstr("\n\\&.not a request.\n"));
  EXPECT_THAT(page, HasSubstr("\na \\e b\n"));
}

}  // namespace
}  // namespace loadline::tools
