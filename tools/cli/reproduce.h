// The one command that makes a result again.
#ifndef LOADLINE_TOOLS_CLI_REPRODUCE_H_
#define LOADLINE_TOOLS_CLI_REPRODUCE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline::tools {

// One word as a POSIX shell reads it: 'a b' quoted, plain words as they are.
std::string ShellQuoted(absl::string_view word);

// Notes the arguments after the program's name, as given; RunCommand does.
void NoteCommand(const std::vector<std::string>& args);

// "loadline plan model.onnx --budget 50%", of the last NoteCommand.
const std::string& CommandToReproduce();

// The last line of every result for people: "Made again by: loadline plan ...".
std::string MadeAgainBy();

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_REPRODUCE_H_
