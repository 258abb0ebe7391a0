// The completion scripts, run in real shells.
#include "tools/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/shell_output.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Script(const std::string& shell) {
  return RunInProcess({"completion", shell}).out;
}

// Bash's completions of the last of `words`, in a folder with one file.
std::vector<std::string> BashOffers(const std::vector<std::string>& words) {
  const std::string folder = FreshFolder();
  EXPECT_TRUE(WriteFile(folder + "/script", Script("bash")).ok());
  std::string line;
  for (const std::string& word : words) absl::StrAppend(&line, " '", word, "'");
  const std::string command = absl::StrCat(
      "cd ", folder, " && bash -c 'source ./script; COMP_WORDS=(loadline ",
      absl::StrReplaceAll(line, {{"'", "\""}}), "); COMP_CWORD=", words.size(),
      "; _loadline; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  const std::string out = ShellOutput(command);
  return absl::StrSplit(out, '\n', absl::SkipEmpty());
}

TEST(BashCompletion, OffersVerbsThenFlagsThenValues) {
  EXPECT_THAT(BashOffers({"re"}), ElementsAre("report"));
  EXPECT_THAT(BashOffers({"run", "--mom"}), ElementsAre("--momentum"));
  EXPECT_THAT(BashOffers({"eval", "--mom"}), IsEmpty());
  EXPECT_THAT(BashOffers({"run", "--loss", ""}),
              ElementsAre("cross_entropy", "mse", "l1", "huber",
                          "bce_with_logits", "model"));
  EXPECT_THAT(BashOffers({"completion", ""}), ElementsAre("bash", "zsh"));
}

TEST(BashCompletion, OffersFilesWhereAFileBelongs) {
  EXPECT_THAT(BashOffers({"run", ""}), ElementsAre("script"));
  EXPECT_THAT(BashOffers({"run", "--data", ""}), ElementsAre("script"));
  EXPECT_THAT(BashOffers({"run", "-o", "s"}), ElementsAre("script"));
  EXPECT_THAT(BashOffers({"run", "--steps", ""}), IsEmpty());
}

TEST(ZshCompletion, DescribesEveryFlagOfEveryVerb) {
  const std::string script = Script("zsh");
  EXPECT_THAT(script, HasSubstr("'plan:Plan a training step"));
  EXPECT_THAT(script, HasSubstr("'*--loss[Loss (default cross_entropy)]"
                                ":cross_entropy|mse|l1|huber|bce_with_logits"
                                "|model:(cross_entropy mse l1 huber "
                                "bce_with_logits model)'"));
  EXPECT_THAT(script, HasSubstr("'*--steps[Steps in all]:N: '"));
  EXPECT_THAT(script,
              HasSubstr("'*--data[Arrays of inputs and target\\: .npz"));
  EXPECT_THAT(script, HasSubstr("]:FILE:_files'"));
}

}  // namespace
}  // namespace loadline::tools
