// The command's verbs and flags as data, read from the parser itself, so that
// help, shell completion and the man page always agree with it.
#ifndef LOADLINE_TOOLS_CLI_HELP_H_
#define LOADLINE_TOOLS_CLI_HELP_H_

#include <string>
#include <vector>

// CLI11 is slow to include; only files that read the parser include it.
namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

// The parser's group of flags that only --help-all shows.
inline constexpr char kRareFlags[] = "Rare";

struct FlagHelp {
  std::vector<std::string> names;    // "-o", "--output"; an argument's name
  std::string value;                 // "FILE"; empty: the flag takes none
  std::vector<std::string> choices;  // the allowed words; empty: any value
  std::string text;
  bool positional = false;
  bool required = false;
  bool rare = false;
};

struct VerbHelp {
  std::string name;
  std::string text;
  std::string example;
  std::vector<FlagHelp> flags;  // arguments first
};

VerbHelp DescribeVerb(const CLI::App& verb);
std::vector<VerbHelp> DescribeVerbs(const CLI::App& command);

// At most 80 columns wide. `all`: includes rare flags.
std::string VerbHelpText(const VerbHelp& verb, bool all);
std::string CommandHelpText(const std::vector<VerbHelp>& verbs);

// "--batch N", "-o, --output FILE".
std::string FlagUsage(const FlagHelp& flag);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_HELP_H_
