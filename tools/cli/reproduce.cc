// Results contain the command that made them, so that readers can make them
// again. Tested by tests/tools/cli/reproduce_test.cc.
#include "tools/cli/reproduce.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace loadline::tools {
namespace {

struct Command {
  std::string text = "loadline";
  std::vector<std::string> config_files;
};

Command& Noted() {
  static Command& command = *new Command();
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

void NoteCommand(const std::vector<std::string>& args,
                 std::vector<std::string> config_files) {
  Noted() = {.config_files = std::move(config_files)};
  for (const std::string& arg : args) {
    absl::StrAppend(&Noted().text, " ", ShellQuoted(arg));
  }
}

const std::vector<std::string>& ConfigFiles() { return Noted().config_files; }

const std::string& CommandToReproduce() { return Noted().text; }

std::string ReproduceWith() {
  return absl::StrCat("Reproduce with: ", CommandToReproduce(), "\n");
}

}  // namespace loadline::tools
