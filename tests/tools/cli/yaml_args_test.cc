// A settings file is equivalent to its flags, and flags override it.
#include "tools/cli/yaml_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ExpandConfig, PutsFieldsBeforeTheFlagsThatOverrideThem) {
  const std::string path =
      WriteFile("a.yaml",
                "model: m.onnx\nlr: 0.1\nno-shuffle: true\nnesterov: false\n"
                "dim: [a=1, b=2]\n");
  auto args = ExpandConfig({"run", "--config", path, "--lr", "0.2"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->args,
              ElementsAre("run", "m.onnx", "--lr=0.1", "--no-shuffle",
                          "--dim=a=1", "--dim=b=2", "--lr", "0.2"));
  EXPECT_THAT(args->config_files, ElementsAre(path));
}

TEST(ExpandConfig, LeavesArgumentsWithoutAFileAlone) {
  auto args = ExpandConfig({"run", "m.onnx"});
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->args, ElementsAre("run", "m.onnx"));
  EXPECT_THAT(args->config_files, ElementsAre());
}

TEST(ExpandConfig, NamesFileAndLineOfWhatItCannotRead) {
  const std::string nested = WriteFile("b.yaml", "lr: 1\ndim: {a: 1}\n");
  EXPECT_THAT(
      std::string(
          ExpandConfig({"run", "--config=" + nested}).status().message()),
      HasSubstr("b.yaml:2: dim"));
  const std::string broken = WriteFile("c.yaml", "a: [1\n");
  EXPECT_FALSE(ExpandConfig({"run", "--config", broken}).ok());
  EXPECT_FALSE(ExpandConfig({"run", "--config", "/no/such.yaml"}).ok());
  EXPECT_FALSE(ExpandConfig({"run", "--config"}).ok());
}

TEST(ExpandConfig, RefusesEmptyValues) {
  for (const char* text : {"lr: 1\noutput: \"\"\n", "lr: 1\noutput:\n",
                           "lr: 1\noutput: ['']\n", "lr: 1\noutput: [~]\n"}) {
    const std::string path = WriteFile("empty.yaml", text);
    const std::string message(
        ExpandConfig({"run", "--config", path}).status().message());
    EXPECT_THAT(message, HasSubstr("empty.yaml:2: output: ")) << text;
  }
}

}  // namespace
}  // namespace loadline::tools
