// A settings file is equivalent to its flags, and flags override it.
#include "tools/cli/yaml_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WrittenFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

// The arguments that a verb with some flags is given.
absl::StatusOr<std::vector<std::string>> Expand(
    const std::vector<std::string>& args, std::string* model = nullptr) {
  auto config = ReadConfigs(args);
  if (!config.ok()) return config.status();
  CLI::App verb{"", "run"};
  std::string text;
  std::string last;
  std::vector<std::string> list;
  bool flag = false;
  verb.add_option("model", text)->required();
  verb.add_option("--lr", last)->take_last();
  verb.add_option("-o,--output", last)->take_last();
  verb.add_option("--dim", list);
  verb.add_flag("--no-shuffle", flag);
  verb.add_flag("--nesterov", flag);
  verb.add_flag("--calibrate,!--no-calibrate", flag);
  auto applied = ApplyConfigs(*config, &verb);
  if (applied.ok() && model != nullptr) {
    std::vector<std::string> rest(applied->rbegin(), applied->rend() - 1);
    verb.parse(rest);
    *model = text;
  }
  return applied;
}

std::string ErrorOf(const std::string& path) {
  return std::string(Expand({"run", "--config", path}).status().message());
}

TEST(ApplyConfigs, PutsFieldsBeforeTheFlagsThatOverrideThem) {
  const std::string path = WrittenFile("a.yaml",
                                       "lr: 0.1\nno-shuffle: true\n"
                                       "nesterov: false\ncalibrate: false\n"
                                       "dim: [a=1, b=2]\n");
  auto args = Expand({"run", "--config", path, "--lr", "0.2"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(
      *args, ElementsAre("run", "--lr=0.1", "--no-shuffle", "--calibrate=false",
                         "--dim=a=1", "--dim=b=2", "--lr", "0.2"));
}

TEST(ApplyConfigs, TakesTheModelOfTheFileUnlessTheCommandLineNamesOne) {
  const std::string path = WrittenFile("m.yaml", "lr: 1\nmodel: file.onnx\n");
  std::string model;
  ASSERT_TRUE(Expand({"run", "--config", path}, &model).ok());
  EXPECT_EQ(model, "file.onnx");
  ASSERT_TRUE(Expand({"run", "line.onnx", "--config", path}, &model).ok());
  EXPECT_EQ(model, "line.onnx");
}

TEST(ReadConfigs, LeavesArgumentsWithoutAFileAlone) {
  auto config = ReadConfigs({"run", "m.onnx"});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->args, ElementsAre("run", "m.onnx"));
  EXPECT_THAT(config->files, ElementsAre());
  const std::string path = WrittenFile("f.yaml", "lr: 1\n");
  config = ReadConfigs({"run", "--config=" + path, "m.onnx"});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->args, ElementsAre("run", "m.onnx"));
  EXPECT_THAT(config->files, ElementsAre(path));
}

TEST(ReadConfigs, NamesFileAndLineOfWhatItCannotRead) {
  EXPECT_THAT(ErrorOf(WrittenFile("b.yaml", "lr: 1\ndim: {a: 1}\n")),
              HasSubstr("b.yaml:2: dim"));
  EXPECT_FALSE(
      ReadConfigs({"run", "--config", WrittenFile("c.yaml", "a: [1\n")}).ok());
  EXPECT_FALSE(ReadConfigs({"run", "--config", "/no/such.yaml"}).ok());
  EXPECT_FALSE(ReadConfigs({"run", "--config"}).ok());
}

TEST(ReadConfigs, RefusesEmptyValues) {
  for (const char* text :
       {"lr: 1\noutput: \"\"\n", "lr: 1\noutput:\n", "lr: 1\noutput: []\n",
        "lr: 1\noutput: ['']\n", "lr: 1\noutput: [~]\n"}) {
    EXPECT_THAT(ErrorOf(WrittenFile("empty.yaml", text)),
                HasSubstr("empty.yaml:2: output: "))
        << text;
  }
}

TEST(ApplyConfigs, NamesFileAndLineOfWhatIsNoFlag) {
  for (const char* text :
       {"lr: 1\nlearning_rate: 2\n", "lr: 1\nconfig: b.yaml\n",
        "lr: 1\nlr: [1, 2]\n", "lr: 1\nno-shuffle: [true, true]\n",
        "lr: 1\nno-shuffle: perhaps\n", "lr: 1\nmodel: [a, b]\n"}) {
    EXPECT_THAT(ErrorOf(WrittenFile("flag.yaml", text)),
                HasSubstr("flag.yaml:2: "))
        << text;
  }
}

// `output: true` must not take the next argument as its value.
TEST(ApplyConfigs, PassesEveryWordToAFlagThatTakesAValue) {
  auto args =
      Expand({"run", "--config", WrittenFile("t.yaml", "output: true\n")});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(*args, ElementsAre("run", "--output=true"));
}

}  // namespace
}  // namespace loadline::tools
