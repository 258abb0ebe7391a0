// Help fits a screen and is generated from the parser.
#include "tools/cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "CLI/CLI.hpp"
#include "tests/tools/support/in_process.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Help : public testing::Test {
 protected:
  Help()
      : command_("", "loadline"), verb_(command_.add_subcommand("go", "Go")) {
    verb_->footer("Example:\n  loadline go x");
    verb_->add_option("--size", size_, "How large")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb_->add_option("place", place_, "Where to")->required();
    verb_->add_option("-o,--output", place_, "Out")->type_name("FILE");
    verb_->add_option("--way", place_, "How")
        ->check(CLI::IsMember({"left", "right"}));
    verb_->add_flag("--fast,!--slow", fast_, "Hurry")->group(kRareFlags);
  }

  int64_t size_ = 7;
  bool fast_ = false;
  std::string place_;
  CLI::App command_;
  CLI::App* verb_;
};

TEST_F(Help, ReadsNamesValuesAndChoicesFromTheParser) {
  const VerbHelp verb = DescribeVerbs(command_)[0];
  EXPECT_EQ(verb.name, "go");
  EXPECT_EQ(verb.example, "loadline go x");
  ASSERT_EQ(verb.flags.size(), 6);
  EXPECT_TRUE(verb.flags[0].positional);
  EXPECT_TRUE(verb.flags[0].required);
  EXPECT_EQ(FlagUsage(verb.flags[0]), "place");
  EXPECT_EQ(FlagUsage(verb.flags[1]), "-h, --help");
  EXPECT_EQ(FlagUsage(verb.flags[2]), "--size N");
  EXPECT_EQ(verb.flags[2].text, "How large (default 7)");
  EXPECT_EQ(FlagUsage(verb.flags[3]), "-o, --output FILE");
  EXPECT_EQ(FlagUsage(verb.flags[4]), "--way left|right");
  EXPECT_THAT(verb.flags[4].choices, ElementsAre("left", "right"));
  EXPECT_THAT(verb.flags[5].names, ElementsAre("--fast", "--slow"));
  EXPECT_EQ(verb.flags[5].value, "");
  EXPECT_TRUE(verb.flags[5].rare);
}

TEST_F(Help, LeavesRareFlagsToHelpAll) {
  const VerbHelp verb = DescribeVerb(*verb_);
  const std::string text = VerbHelpText(verb, /*all=*/false);
  EXPECT_THAT(text, HasSubstr("Usage: loadline go place [FLAGS]\n"));
  EXPECT_THAT(text, HasSubstr("  --size N                 How large"));
  EXPECT_THAT(text, Not(HasSubstr("--fast")));
  EXPECT_THAT(text, HasSubstr("1 more: loadline go --help-all"));
  EXPECT_THAT(text, testing::EndsWith("Example:\n  loadline go x\n"));
  EXPECT_THAT(VerbHelpText(verb, /*all=*/true), HasSubstr("--fast, --slow"));
}

TEST_F(Help, ListsTheVerbs) {
  EXPECT_THAT(CommandHelpText(DescribeVerbs(command_)),
              HasSubstr("  go          Go\n"));
}

TEST(HelpCommand, IsShownHoweverItIsAskedFor) {
  const CommandOutput verbs = RunInProcess({"--help"});
  EXPECT_EQ(verbs.exit_code, 0);
  EXPECT_NE(verbs.out.find("Usage: loadline VERB"), std::string::npos);
  EXPECT_EQ(RunInProcess({}).out, verbs.out);
  EXPECT_EQ(RunInProcess({}).exit_code, 0);
  EXPECT_EQ(RunInProcess({"help"}).out, verbs.out);
  EXPECT_EQ(RunInProcess({"help", "--help"}).out, verbs.out);
  EXPECT_EQ(RunInProcess({"help", "help"}).out, verbs.out);
  EXPECT_EQ(RunInProcess({"help", "help"}).exit_code, 0);
  const CommandOutput plan = RunInProcess({"help", "plan"});
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_EQ(plan.out, RunInProcess({"plan", "--help"}).out);
  EXPECT_EQ(RunInProcess({"help", "plan", "--help-all"}).out,
            RunInProcess({"plan", "--help-all"}).out);
}

}  // namespace
}  // namespace loadline::tools
