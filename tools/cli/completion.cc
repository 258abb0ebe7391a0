// Offers verbs, then flags; after a flag its words or files, or nothing if it
// takes a number. Tested by tests/tools/cli/completion_test.cc.
#include "tools/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace loadline::tools {
namespace {

bool TakesAFile(const FlagHelp& flag) {
  return flag.value == "FILE" || flag.value == "FOLDER";
}

std::string VerbNames(const std::vector<VerbHelp>& verbs) {
  return absl::StrJoin(verbs, " ", [](std::string* out, const VerbHelp& verb) {
    out->append(verb.name);
  });
}

// The text in single quotes.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// "run:--loss|run:-l) reply='cross_entropy mse' ;;", for flags with a value.
std::string BashValues(const VerbHelp& verb) {
  std::string out;
  for (const FlagHelp& flag : verb.flags) {
    if (flag.positional || flag.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : flag.names) {
      patterns.push_back(absl::StrCat(verb.name, ":", name));
    }
    absl::StrAppend(&out, "    ", absl::StrJoin(patterns, "|"), ") ",
                    TakesAFile(flag)
                        ? std::string("files=1")
                        : "words=" + Quoted(absl::StrJoin(flag.choices, " ")),
                    " ;;\n");
  }
  return out;
}

std::string BashFlags(const VerbHelp& verb) {
  std::vector<std::string> names;
  std::vector<std::string> words;
  bool files = false;
  for (const FlagHelp& flag : verb.flags) {
    if (flag.positional) {
      words.insert(words.end(), flag.choices.begin(), flag.choices.end());
      files = files || flag.choices.empty();
      continue;
    }
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return absl::StrCat("      ", verb.name,
                      ") flags=", Quoted(absl::StrJoin(names, " ")),
                      " words=", Quoted(absl::StrJoin(words, " ")),
                      files ? " files=1" : "", " ;;\n");
}

// Escapes text for a specification of _arguments, inside brackets or colons.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshValue(const FlagHelp& flag) {
  const std::string name = ZshText(flag.value.empty() ? "value" : flag.value);
  if (!flag.choices.empty()) {
    return absl::StrCat(":", name, ":(", absl::StrJoin(flag.choices, " "), ")");
  }
  return absl::StrCat(":", name, TakesAFile(flag) ? ":_files" : ": ");
}

std::string ZshFlags(const VerbHelp& verb) {
  std::string out = absl::StrCat("    ", verb.name, ")\n      _arguments");
  for (const FlagHelp& flag : verb.flags) {
    if (flag.positional) {
      absl::StrAppend(
          &out, " \\\n        ",
          Quoted(absl::StrCat(
              ":", flag.names[0],
              flag.choices.empty()
                  ? ":_files"
                  : absl::StrCat(":(", absl::StrJoin(flag.choices, " "),
                                 ")"))));
      continue;
    }
    for (const std::string& name : flag.names) {
      absl::StrAppend(
          &out, " \\\n        ",
          Quoted(absl::StrCat("*", name, "[", ZshText(flag.text), "]",
                              flag.value.empty() ? "" : ZshValue(flag))));
    }
  }
  return absl::StrCat(out, "\n      ;;\n");
}

}  // namespace

std::string BashCompletion(const std::vector<VerbHelp>& verbs) {
  std::string values;
  std::string flags;
  for (const VerbHelp& verb : verbs) {
    values += BashValues(verb);
    flags += BashFlags(verb);
  }
  return absl::StrCat(
      "# bash completion of loadline: eval \"$(loadline completion bash)\"\n"
      "_loadline() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} flags='' words='' files=''\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '",
      VerbNames(verbs),
      " --help --version' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]} in\n",
      values,
      "    *)\n"
      "      case ${COMP_WORDS[1]} in\n",
      absl::StrReplaceAll(flags, {{"      ", "        "}}),
      "      esac\n"
      "      if [[ $current == -* ]]; then words=$flags files=''; fi ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  if [[ -n $files ]]; then\n"
      "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _loadline loadline\n");
}

std::string ZshCompletion(const std::vector<VerbHelp>& verbs) {
  std::string list;
  std::string flags;
  for (const VerbHelp& verb : verbs) {
    absl::StrAppend(&list, "    ",
                    Quoted(absl::StrCat(verb.name, ":", verb.text)), "\n");
    flags += ZshFlags(verb);
  }
  return absl::StrCat(
      "#compdef loadline\n"
      "# zsh completion of loadline: eval \"$(loadline completion zsh)\"\n"
      "_loadline() {\n"
      "  local -a verbs\n"
      "  verbs=(\n",
      list,
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n",
      flags,
      "  esac\n"
      "}\n"
      "if [[ $funcstack[1] == _loadline ]]; then\n"
      "  _loadline \"$@\"\n"
      "else\n"
      "  compdef _loadline loadline\n"
      "fi\n");
}

}  // namespace loadline::tools
