// --help shows the flags that most users need and fits a screen; --help-all
// shows the rare ones too. Tested by tests/tools/cli/help_test.cc and the
// goldens of tests/tools/verbs/golden_test.cc.
#include "tools/cli/help.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/cli/wrap.h"

namespace loadline::tools {
namespace {

constexpr size_t kIndent = 27;
constexpr char kExample[] = "Example:\n  ";

// Turns "INT:POSITIVE" into "N" and "TEXT:{adamw,sgd}" into "adamw|sgd".
std::string ValueName(const std::string& type,
                      const std::vector<std::string>& choices) {
  if (!choices.empty()) return absl::StrJoin(choices, "|");
  const std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == "UINT") return "N";
  return name == "FLOAT" ? "X" : name;
}

std::vector<std::string> Choices(const std::string& type) {
  const size_t begin = type.find('{');
  const size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

FlagHelp Describe(const CLI::Option& option) {
  FlagHelp flag;
  flag.positional = option.get_positional();
  flag.required = option.get_required();
  flag.rare = option.get_group() == kRareFlags;
  flag.text = option.get_description();
  // CLI11 lists a negatable switch as "--no-x{false}".
  const std::string names = absl::StrReplaceAll(
      option.get_name(flag.positional, !flag.positional), {{"{false}", ""}});
  flag.names = absl::StrSplit(names, ',');
  if (option.get_expected_max() > 0) {
    flag.choices = Choices(option.get_type_name());
    flag.value = ValueName(option.get_type_name(), flag.choices);
  }
  if (!option.get_default_str().empty()) {
    absl::StrAppend(&flag.text, " (default ", option.get_default_str(), ")");
  }
  return flag;
}

}  // namespace

VerbHelp DescribeVerb(const CLI::App& verb) {
  VerbHelp help;
  help.name = verb.get_name();
  help.text = verb.get_description();
  help.example = std::string(absl::StripPrefix(verb.get_footer(), kExample));
  for (const CLI::Option* option : verb.get_options({})) {
    help.flags.push_back(Describe(*option));
  }
  std::stable_partition(help.flags.begin(), help.flags.end(),
                        [](const FlagHelp& flag) { return flag.positional; });
  return help;
}

std::vector<VerbHelp> DescribeVerbs(const CLI::App& command) {
  std::vector<VerbHelp> verbs;
  for (const CLI::App* verb : command.get_subcommands({})) {
    verbs.push_back(DescribeVerb(*verb));
  }
  return verbs;
}

std::string FlagUsage(const FlagHelp& flag) {
  if (flag.positional) return flag.names[0];
  std::string usage = absl::StrJoin(flag.names, ", ");
  if (!flag.value.empty()) absl::StrAppend(&usage, " ", flag.value);
  return usage;
}

std::string VerbHelpText(const VerbHelp& verb, bool all) {
  std::string arguments;
  std::string rows;
  int rare = 0;
  for (const FlagHelp& flag : verb.flags) {
    if (flag.positional) {
      absl::StrAppend(&arguments, flag.required ? " " : " [", flag.names[0],
                      flag.required ? "" : "]");
    }
    if (flag.rare && !all) {
      ++rare;
      continue;
    }
    rows += WrappedRow("  " + FlagUsage(flag), flag.text, kIndent);
  }
  std::string out = absl::StrCat("Usage: loadline ", verb.name, arguments,
                                 " [FLAGS]\n\n", verb.text, ".\n\n", rows);
  if (rare > 0) {
    absl::StrAppend(&out, "\n", rare, " more: loadline ", verb.name,
                    " --help-all\n");
  }
  return absl::StrCat(out, "\n", kExample, verb.example, "\n");
}

std::string CommandHelpText(const std::vector<VerbHelp>& verbs) {
  std::string out =
      "Usage: loadline VERB [FLAGS]\n\n"
      "Plans a training step inside a byte budget, proves the plan, and runs "
      "it.\n\n";
  for (const VerbHelp& verb : verbs) {
    out += WrappedRow("  " + verb.name, verb.text, 14);
  }
  return absl::StrCat(out, "\nloadline help VERB lists a verb's flags.\n\n",
                      kExample,
                      "loadline run model.onnx --data d.npz --budget 50%\n");
}

}  // namespace loadline::tools
