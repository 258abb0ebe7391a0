// `loadline completion`: a script for the user's shell. Tested by
// tests/tools/cli/completion_test.cc.
#include "tools/cli/completion.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/command.h"
#include "tools/cli/help.h"
#include "tools/cli/standard_output.h"

namespace loadline::tools {

VerbBody AddCompletion(CLI::App* app) {
  auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  return [app, shell] {
    const std::vector<VerbHelp> verbs = DescribeVerbs(*app->get_parent());
    PrintText(*shell == "bash" ? BashCompletion(verbs) : ZshCompletion(verbs));
    return absl::OkStatus();
  };
}

}  // namespace loadline::tools
