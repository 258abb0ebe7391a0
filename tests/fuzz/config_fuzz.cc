// libFuzzer: any bytes as a file of settings (YAML), given to a verb with every
// kind of flag. Nothing may crash; every argument that comes out is the verb, a
// flag of the file, or what stood on the command line. Seeds in corpus/config.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "planner/base/check.h"
#include "tests/fuzz/memory_file.h"
#include "tools/cli/yaml_args.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline;
  const MemoryFile file(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  const auto config =
      tools::ReadConfigs({"run", "--config", file.path(), "--lr=0.2"});
  if (!config.ok()) return 0;
  for (const tools::ConfigField& field : config->fields) {
    LOADLINE_CHECK(!field.values.empty());
    for (const std::string& value : field.values) {
      LOADLINE_CHECK(!value.empty());
    }
  }
  CLI::App verb{"", "run"};
  std::string text;
  std::vector<std::string> list;
  bool flag = false;
  verb.add_option("model", text);
  verb.add_option("--lr", text)->take_last();
  verb.add_option("--dim", list);
  verb.add_flag("--no-shuffle", flag);
  verb.add_flag("--calibrate,!--no-calibrate", flag);
  const auto args = tools::ApplyConfigs(*config, &verb);
  if (!args.ok()) return 0;
  LOADLINE_CHECK(args->front() == "run");
  LOADLINE_CHECK(args->back() == "--lr=0.2");
  for (size_t i = 1; i < args->size(); ++i) {
    LOADLINE_CHECK(absl::StartsWith((*args)[i], "--"));
  }
  return 0;
}
