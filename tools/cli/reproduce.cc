// Results contain the command that made them, so that readers can make them
// again. Tested by tests/tools/cli/reproduce_test.cc.
#include "tools/cli/reproduce.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace loadline::tools {
namespace {

std::string& Noted() {
  static std::string& command = *new std::string("loadline");
  return command;
}

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("_-+=./:,@%").find(c) != absl::string_view::npos;
}

}  // namespace

std::string ShellQuoted(absl::string_view word) {
  bool plain = !word.empty();
  for (char c : word) plain = plain && IsPlain(c);
  if (plain) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void NoteCommand(const std::vector<std::string>& args) {
  Noted() = "loadline";
  for (const std::string& arg : args) {
    absl::StrAppend(&Noted(), " ", ShellQuoted(arg));
  }
}

const std::string& CommandToReproduce() { return Noted(); }

std::string MadeAgainBy() {
  return absl::StrCat("Made again by: ", CommandToReproduce(), "\n");
}

}  // namespace loadline::tools
