// Used by the tests of tools/check_*.
#include "tests/tools/support/run_check.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/fresh_folder.h"

namespace loadline::tools {

int RunCheck(const std::string& script,
             const std::map<std::string, std::string>& files) {
  const std::filesystem::path root = FreshFolder();
  for (const auto& [file, text] : files) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  const std::string command =
      absl::StrCat(LOADLINE_SOURCE_DIR, "/tools/dev/", script, " ",
                   root.string(), " >/dev/null");
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace loadline::tools
