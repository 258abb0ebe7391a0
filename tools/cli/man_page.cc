// Tested by tests/tools/cli/man_page_test.cc.
#include "tools/cli/man_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/exit_code.h"

namespace loadline::tools {
namespace {

// Escapes text so that roff takes no line of it as a request.
std::string Roff(const std::string& text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string Entry(const std::string& name, const std::string& text) {
  return absl::StrCat(".TP\n\\fB", Roff(name), "\\fR\n", Roff(text), "\n");
}

std::string VerbSection(const VerbHelp& verb) {
  std::string usage = verb.name;
  for (const FlagHelp& flag : verb.flags) {
    if (flag.positional) absl::StrAppend(&usage, " ", flag.names[0]);
  }
  std::string out = absl::StrCat(".SS \"loadline ", Roff(usage), " [flags]\"\n",
                                 Roff(verb.text), ".\n");
  for (const FlagHelp& flag : verb.flags) {
    out += Entry(FlagUsage(flag), flag.text);
  }
  return absl::StrCat(out, ".PP\nExample:\n.PP\n.nf\n", Roff(verb.example),
                      "\n.fi\n");
}

}  // namespace

std::string ManPage(const std::vector<VerbHelp>& verbs,
                    const std::string& version) {
  std::string out = absl::StrCat(
      ".TH LOADLINE 1 \"\" \"loadline ", Roff(version),
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "loadline \\- train a model in less memory than it wants\n"
      ".SH SYNOPSIS\n"
      "\\fBloadline\\fR \\fIverb\\fR [flags]\n"
      ".SH DESCRIPTION\n"
      "Takes an ONNX model and a number of bytes, decides tensor by tensor "
      "what "
      "to keep, what to compute again and what to copy out and back, proves "
      "that the plan fits, and runs it. Results go to stdout, the log to "
      "stderr.\n"
      ".SH VERBS\n");
  for (const VerbHelp& verb : verbs) out += VerbSection(verb);
  out += ".SH \"EXIT STATUS\"\n";
  for (const ExitCodeMeaning& one : ExitCodeMeanings()) {
    out += Entry(absl::StrCat(one.code), one.meaning);
  }
  absl::StrAppend(&out, ".SH ENVIRONMENT\n",
                  Entry("LOADLINE_CACHE",
                        "Folder of this machine's profile (default: "
                        "~/.cache/loadline)"));
  return out;
}

}  // namespace loadline::tools
