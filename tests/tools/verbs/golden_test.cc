// The command's output for the small model, compared with files in
// tests/goldens. LOADLINE_UPDATE_GOLDENS=1 writes them anew; review the
// difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

constexpr size_t kScreenColumns = 80;
constexpr size_t kScreenLines = 42;

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat("tests/goldens/", name, ".txt");
  if (std::getenv("LOADLINE_UPDATE_GOLDENS") != nullptr) {
    ASSERT_TRUE(WriteFile(path, text).ok());
  }
  const auto golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(text, *golden) << path;
}

void ExpectScreen(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), kScreenColumns) << std::string(line);
  }
}

std::vector<std::string> Verbs() {
  // The first word of each row of the list.
  std::vector<std::string> verbs;
  const std::string help = RunInProcess({"--help"}).out;
  for (absl::string_view line : absl::StrSplit(help, '\n')) {
    if (line.size() < 3 || line.substr(0, 2) != "  " || line[2] == ' ') {
      continue;
    }
    const absl::string_view word = *absl::StrSplit(line.substr(2), ' ').begin();
    if (word != "loadline") verbs.push_back(std::string(word));
  }
  return verbs;
}

TEST(Golden, HelpOfEveryVerb) {
  std::string all = RunInProcess({"--help"}).out;
  ExpectScreen(all);
  const std::vector<std::string> verbs = Verbs();
  EXPECT_GE(verbs.size(), 13);
  for (const std::string& verb : verbs) {
    SCOPED_TRACE(verb);
    const CommandOutput help = RunInProcess({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    ExpectScreen(help.out);
    const std::vector<std::string> lines = absl::StrSplit(help.out, '\n');
    EXPECT_LE(lines.size(), kScreenLines);
    // The last line before the final empty one is an example.
    ASSERT_GE(lines.size(), 3);
    EXPECT_EQ(lines[lines.size() - 3], "Example:");
    EXPECT_EQ(lines[lines.size() - 2].find("  loadline " + verb), 0);
    absl::StrAppend(&all, "\n$ loadline ", verb, " --help\n", help.out);
    ExpectScreen(RunInProcess({verb, "--help-all"}).out);
  }
  ExpectGolden("help", all);
}

TEST(Golden, HelpAllShowsWhatHelpLeavesOut) {
  EXPECT_EQ(RunInProcess({"run", "--help"}).out.find("--stress"),
            std::string::npos);
  EXPECT_NE(RunInProcess({"run", "--help-all"}).out.find("--stress"),
            std::string::npos);
}

// Workspaces depend on the processor, so no problem is made here. A search over
// this problem of ten values has only one result; the small model's problem,
// made once, is for verbs that do not search.
constexpr char kChain[] = "tests/tools/chain_problem.json";
constexpr char kMlpProblem[] = "tests/tools/mlp_problem.json";

class GoldenTable : public testing::Test {
 protected:
  void SetUp() override { folder_ = FreshFolder(); }

  // Replaces paths of this run, which no golden contains.
  void Expect(const std::string& name, const std::vector<std::string>& args,
              int exit_code = 0) {
    SCOPED_TRACE(name);
    const CommandOutput output = RunInProcess(args);
    EXPECT_EQ(output.exit_code, exit_code) << output.err;
    const std::string text =
        absl::StrReplaceAll(output.out, {{folder_ + "/", ""}});
    ExpectScreen(text);
    ExpectGolden(name, text);
  }
  std::string In(const std::string& file) { return folder_ + "/" + file; }
  std::string folder_;
};

TEST_F(GoldenTable, Plan) {
  Expect("plan", {"plan", kChain, "--budget", "90%"});
}

TEST_F(GoldenTable, Inspect) {
  Expect("inspect", {"inspect", ZooPath("mlp.onnx")});
}

TEST_F(GoldenTable, Groups) {
  Expect("groups", {"groups", ZooPath("mlp.onnx")});
}

TEST_F(GoldenTable, Check) { Expect("check", {"check", ZooPath("mlp.onnx")}); }

TEST_F(GoldenTable, Estimate) {
  Expect("estimate", {"estimate", kMlpProblem, "--budget", "300KiB"});
  Expect("estimate_never", {"estimate", kMlpProblem, "--budget", "100KiB"}, 3);
}

TEST_F(GoldenTable, VerifyAndCompare) {
  for (const auto& [budget, file] :
       {std::pair("100%", "a.json"), std::pair("90%", "b.json")}) {
    const CommandOutput planned =
        RunInProcess({"plan", kChain, "--budget", budget, "-o", In(file)});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
  }
  Expect("verify", {"verify", kChain, In("b.json")});
  Expect("compare",
         {"compare", In("a.json"), In("b.json"), "--problem", kChain});
}

}  // namespace
}  // namespace loadline::tools
