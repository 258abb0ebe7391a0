// A shell reads back what ShellQuoted writes.
#include "tools/cli/reproduce.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/tools/support/shell_output.h"

namespace loadline::tools {
namespace {

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  for (const char* word :
       {"plan", "--budget=50%", "a/b-c_d.onnx", "x:1,2@3+4"}) {
    EXPECT_EQ(ShellQuoted(word), word);
  }
}

TEST(ShellQuoted, IsReadBackByAShell) {
  for (const char* word : {"", "a b", "it's", "$HOME", "`id`", "a;b", "*", "~",
                           "\"", "\\", "a\tb", "!x", "#y", "''"}) {
    EXPECT_EQ(ShellOutput("printf '%s\\n' " + ShellQuoted(word)),
              std::string(word) + "\n");
  }
}

TEST(CommandToReproduce, IsTheCommandThatWasNoted) {
  NoteCommand({"plan", "my model.onnx", "--budget", "50%"});
  EXPECT_EQ(CommandToReproduce(), "loadline plan 'my model.onnx' --budget 50%");
  EXPECT_EQ(ReproduceWith(),
            "Reproduce with: loadline plan 'my model.onnx' --budget 50%\n");
}

}  // namespace
}  // namespace loadline::tools
