// What ShellQuoted writes, a shell reads back.
#include "tools/reproduce.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <string>
#include <vector>

namespace loadline::tools {
namespace {

// What a POSIX shell makes of the command's words, one per line.
std::string ReadByAShell(const std::string& words) {
  FILE* shell = popen(("printf '%s\\n' " + words).c_str(), "r");
  EXPECT_NE(shell, nullptr);
  std::string out;
  for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) {
    out += static_cast<char>(c);
  }
  EXPECT_EQ(pclose(shell), 0);
  return out;
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  for (const char* word :
       {"plan", "--budget=50%", "a/b-c_d.onnx", "x:1,2@3+4"}) {
    EXPECT_EQ(ShellQuoted(word), word);
  }
}

TEST(ShellQuoted, IsReadBackByAShell) {
  for (const char* word : {"", "a b", "it's", "$HOME", "`id`", "a;b", "*", "~",
                           "\"", "\\", "a\tb", "!x", "#y", "''"}) {
    EXPECT_EQ(ReadByAShell(ShellQuoted(word)), std::string(word) + "\n");
  }
}

TEST(CommandToReproduce, IsTheCommandThatWasNoted) {
  NoteCommand({"plan", "my model.onnx", "--budget", "50%"});
  EXPECT_EQ(CommandToReproduce(), "loadline plan 'my model.onnx' --budget 50%");
}

}  // namespace
}  // namespace loadline::tools
