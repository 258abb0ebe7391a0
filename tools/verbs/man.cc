// `loadline man`: the manual page. Tested by tests/tools/man_page_test.cc.
#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "tools/command.h"
#include "tools/help.h"
#include "tools/man_page.h"

namespace loadline::tools {

VerbBody AddMan(CLI::App* app) {
  return [app] {
    fmt::print("{}", ManPage(DescribeVerbs(*app->get_parent()),
                             app->get_parent()->version()));
    return absl::OkStatus();
  };
}

}  // namespace loadline::tools
