// `loadline man`: the manual page. Tested by tests/tools/cli/man_page_test.cc.
#include "CLI/CLI.hpp"
#include "tools/cli/command.h"
#include "tools/cli/help.h"
#include "tools/cli/man_page.h"
#include "tools/cli/standard_output.h"

namespace loadline::tools {

VerbBody AddMan(CLI::App* app) {
  return [app] {
    PrintText(ManPage(DescribeVerbs(*app->get_parent()),
                      app->get_parent()->version()));
    return absl::OkStatus();
  };
}

}  // namespace loadline::tools
