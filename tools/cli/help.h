// The command's verbs and flags as plain data, read from the parser itself, so
// that help, shell completion and the man page cannot disagree with it.
#ifndef LOADLINE_TOOLS_CLI_HELP_H_
#define LOADLINE_TOOLS_CLI_HELP_H_

#include <string>
#include <vector>

// Costly to include: only what reads the parser does.
namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

// The parser's group of flags that --help leaves to --help-all.
inline constexpr char kRareFlags[] = "Rare";

struct FlagHelp {
  std::vector<std::string> names;  // "-o", "--output"; of an argument, its name
  std::string value;               // "FILE"; empty: the flag takes none
  std::vector<std::string> choices;  // where only these words are allowed
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

// At most 80 columns. `all`: rare flags too.
std::string VerbHelpText(const VerbHelp& verb, bool all);
std::string CommandHelpText(const std::vector<VerbHelp>& verbs);

// "--batch N", "-o, --output FILE".
std::string FlagUsage(const FlagHelp& flag);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_HELP_H_
