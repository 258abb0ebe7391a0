// The command `loadline`: one verb per file in tools/verbs/.
#ifndef LOADLINE_TOOLS_CLI_COMMAND_H_
#define LOADLINE_TOOLS_CLI_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

// CLI11 is slow to include; only files that add flags include it.
namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

// A verb's work, run once its flags are parsed. Results go to stdout, the log
// to stderr.
using VerbBody = std::function<absl::Status()>;

// Adds a verb's flags to `app` and returns its body.
using AddVerb = VerbBody (*)(CLI::App* app);

VerbBody AddCheck(CLI::App* app);
VerbBody AddCompare(CLI::App* app);
VerbBody AddCompletion(CLI::App* app);
VerbBody AddDoctor(CLI::App* app);
VerbBody AddEstimate(CLI::App* app);
VerbBody AddEval(CLI::App* app);
VerbBody AddGroups(CLI::App* app);
VerbBody AddInspect(CLI::App* app);
VerbBody AddMan(CLI::App* app);
VerbBody AddPack(CLI::App* app);
VerbBody AddPlan(CLI::App* app);
VerbBody AddPose(CLI::App* app);
VerbBody AddReport(CLI::App* app);
VerbBody AddRun(CLI::App* app);
VerbBody AddSweep(CLI::App* app);
VerbBody AddVerify(CLI::App* app);

// Runs the command with the arguments after the program's name; returns the
// exit code (tools/cli/exit_code.h). Errors are one line on stderr.
int RunCommand(std::vector<std::string> args);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_COMMAND_H_
