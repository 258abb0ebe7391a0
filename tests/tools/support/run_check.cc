// Used by the tests of tools/dev/check_*.
#include "tests/tools/support/run_check.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/shell_output.h"

namespace loadline::tools {
namespace {

// The command that runs the script on a new tree with these files.
std::string CommandOn(const std::string& script,
                      const std::map<std::string, std::string>& files) {
  const std::filesystem::path root = FreshFolder();
  for (const auto& [file, text] : files) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  return absl::StrCat(LOADLINE_SOURCE_DIR, "/tools/dev/", script, " ",
                      root.string());
}

}  // namespace

int RunCheck(const std::string& script,
             const std::map<std::string, std::string>& files) {
  const int status =
      std::system((CommandOn(script, files) + " >/dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string CheckOutput(const std::string& script,
                        const std::map<std::string, std::string>& files) {
  return ShellOutput(CommandOn(script, files) + " || true");
}

}  // namespace loadline::tools
