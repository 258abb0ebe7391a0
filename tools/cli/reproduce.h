// The command line that reproduces a result.
#ifndef LOADLINE_TOOLS_CLI_REPRODUCE_H_
#define LOADLINE_TOOLS_CLI_REPRODUCE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline::tools {

// Quotes one word for a POSIX shell if necessary: 'a b', but plain words as is.
std::string ShellQuoted(absl::string_view word);

// Stores the arguments after the program's name, and the files that --config
// names among them; called by RunCommand.
void NoteCommand(const std::vector<std::string>& args,
                 std::vector<std::string> config_files = {});

// The files of --config, from the last NoteCommand.
const std::vector<std::string>& ConfigFiles();

// "loadline plan model.onnx --budget 50%", from the last NoteCommand.
const std::string& CommandToReproduce();

// The last line of every textual result: "Reproduce with: loadline plan ...".
std::string ReproduceWith();

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_REPRODUCE_H_
