// A command that would destroy a file it reads must fail before it writes.
#include "tools/pipeline/output_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "tests/tools/support/environment.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/device_names.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/machine_profile.h"

namespace loadline::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

std::string ErrorOf(const std::vector<NamedPath>& inputs,
                    const std::vector<NamedPath>& outputs) {
  return std::string(CheckOutputPaths(inputs, outputs).message());
}

TEST(LogWritten, NamesTheFilesOfACommandAfterItsFigures) {
  const std::string out = FreshFolder() + "/plan.json";
  const std::string model = LOADLINE_SOURCE_DIR "/models/zoo/mlp.onnx";
  const CommandOutput plan =
      RunInProcess({"plan", model, "--machine", "l4", "-o", out});
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_THAT(plan.err, HasSubstr("wrote " + out + "\n"));
  EXPECT_THAT(RunInProcess({"plan", model, "--machine", "l4", "-o", "-"}).err,
              Not(HasSubstr("wrote")));
  EXPECT_THAT(
      RunInProcess({"plan", model, "--machine", "l4", "-o", out, "--quiet"})
          .err,
      Not(HasSubstr("wrote")));
}

TEST(CheckOutputPaths, AcceptsFilesThatDiffer) {
  const std::string folder = FreshFolder();
  ASSERT_TRUE(WriteFile(folder + "/in", "in").ok());
  EXPECT_EQ(ErrorOf({{"MODEL", folder + "/in"}, {"--data", ""}},
                    {{"-o", folder + "/out"},
                     {"--trace", folder + "/trace"},
                     {"--html", ""},
                     {"--csv", "-"}}),
            "");
}

TEST(CheckOutputPaths, FindsAnInputUnderAnyName) {
  const std::string folder = FreshFolder();
  const std::string in = folder + "/in";
  ASSERT_TRUE(WriteFile(in, "in").ok());
  fs::create_directory(folder + "/sub");
  fs::create_symlink(in, folder + "/link");
  fs::create_hard_link(in, folder + "/hard");
  fs::create_directory_symlink(folder, folder + "/sub/up");
  for (const std::string name :
       {"/in", "/./in", "//in", "/sub/../in", "/link", "/hard", "/sub/up/in"}) {
    EXPECT_THAT(
        ErrorOf({{"--data", in}}, {{"--checkpoint", folder + name}}),
        AllOf(HasSubstr("--checkpoint "), HasSubstr("overwrite --data")))
        << name;
  }
}

TEST(CheckOutputPaths, FindsTwoOutputsInOneFileThatIsNotThereYet) {
  const std::string folder = FreshFolder();
  EXPECT_THAT(ErrorOf({}, {{"--problem", folder + "/p.json"},
                           {"-o", folder + "/./p.json"}}),
              AllOf(HasSubstr("-o "), HasSubstr("--problem too")));
  fs::create_symlink("p.json", folder + "/link");
  EXPECT_THAT(ErrorOf({}, {{"--problem", folder + "/link"},
                           {"-o", folder + "/p.json"}}),
              HasSubstr("--problem too"));
  EXPECT_THAT(ErrorOf({}, {{"--html", "-"}, {"--csv", "-"}}),
              HasSubstr("--html too"));
}

TEST(CheckOutputPaths, RefusesAFolder) {
  const std::string folder = testing::TempDir();
  const absl::Status status = CheckOutputPaths({}, {{"--checkpoint", folder}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("is a folder"), absl::string_view::npos);
  EXPECT_TRUE(CheckOutputPaths({}, {{"--host-store", folder, true}}).ok());
}

TEST(CheckOutputPaths, RefusesAFileInAFolderThatIsMissing) {
  const std::string folder = FreshFolder();
  const auto says = [&](const std::string& path, const std::string& why) {
    EXPECT_EQ(ErrorOf({}, {{"-o", path}}),
              why.empty() ? "" : path + ": the folder " + why);
  };
  says(folder + "/no/p.json", folder + "/no does not exist");
  ASSERT_TRUE(WriteFile(folder + "/file", "").ok());
  says(folder + "/file/p.json", folder + "/file is none");
  fs::create_symlink(folder + "/no/target", folder + "/link");
  says(folder + "/link", folder + "/no does not exist");
  fs::create_directory(folder + "/no");
  says(folder + "/link", "");
  fs::create_symlink("loop", folder + "/loop");
  EXPECT_THAT(ErrorOf({}, {{"-o", folder + "/loop"}}),
              HasSubstr("leads back to itself"));
  says(folder + "/no/p.json", "");
  EXPECT_EQ(ErrorOf({}, {{"--host-store", folder + "/new", true}}), "");
}

TEST(CheckOutputPaths, KeepsTheProfilesOfThisMachine) {
  const std::string folder = FreshFolder();
  const ScopedEnvironment cache("LOADLINE_CACHE", folder.c_str());
  for (const char* device : {kCpu, kEmulated, kCuda}) {
    const absl::Status status =
        CheckOutputPaths(InputPaths({}), {{"-o", OwnProfilePath(device)}});
    EXPECT_NE(status.message().find("would overwrite the profile"),
              absl::string_view::npos)
        << device;
  }
}

TEST(CheckOutputPaths, LetsDevicesTakeSeveralOutputs) {
  EXPECT_EQ(ErrorOf({{"--data", "/dev/null"}},
                    {{"-o", "/dev/null"}, {"--trace", "/dev/null"}}),
            "");
}

TEST(CheckOutputPaths, KeepsTheWeightsOfAModel) {
  const std::string folder = FreshFolder();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*ReadFile(ZooPath("mlp.onnx"))));
  onnx::TensorProto* weights = model.mutable_graph()->mutable_initializer(0);
  ASSERT_TRUE(WriteFile(folder + "/w.bin", weights->raw_data()).ok());
  weights->clear_raw_data();
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weights->add_external_data();
  location->set_key("location");
  location->set_value("w.bin");
  const std::string path = folder + "/m.onnx";
  ASSERT_TRUE(WriteFile(path, model.SerializeAsString()).ok());
  ASSERT_TRUE(WriteFile(folder + "/other.bin", "").ok());
  EXPECT_THAT(ErrorOf({{"MODEL", path}}, {{"-o", folder + "/w.bin"}}),
              HasSubstr("would overwrite weights of MODEL"));
  EXPECT_EQ(ErrorOf({{"MODEL", path}}, {{"-o", folder + "/other.bin"}}), "");
}

// As in issue reports: exit status 0 and a destroyed input.
TEST(CheckOutputPaths, GuardsEveryVerb) {
  const std::string folder = FreshFolder();
  const std::string model = folder + "/m.onnx", data = folder + "/d.npz";
  fs::copy_file(ZooPath("mlp.onnx"), model);
  fs::copy_file(ZooPath("digits-train.npz"), data);
  const std::string machine = FixedMachinePath();
  const std::string config = folder + "/c.yaml", empty = folder + "/e.yaml";
  ASSERT_TRUE(WriteFile(config, "machine: " + machine + "\n").ok());
  ASSERT_TRUE(WriteFile(empty, "quiet: true\n").ok());
  const auto before =
      *ReadFile(model) + *ReadFile(data) + *ReadFile(config) + *ReadFile(empty);
  const std::vector<std::vector<std::string>> commands = {
      {"run", model, "--data", data, "--steps", "1", "--checkpoint", data},
      {"run", model, "--data", data, "--steps", "1", "-o", data},
      {"run", model, "--data", data, "--steps", "1", "--host-store", model},
      {"run", model, "--data", data, "--steps", "1", "--trace", model},
      {"plan", model, "--machine", machine, "-o", model},
      {"plan", model, "--machine", machine, "--problem", model},
      {"plan", model, "--machine", machine, "-o", folder + "/p", "--problem",
       folder + "/p"},
      {"plan", model, "--machine", machine, "-o", "-", "--json"},
      {"pose", model, "--machine", machine, "-o", model},
      {"report", model, "--machine", machine, "--html", model},
      {"report", model, "--machine", machine, "--trace", model},
      {"report", model, "--machine", machine, "--csv", model},
      {"report", model, "--machine", machine, "--markdown", model},
      {"sweep", model, "--machine", machine, "--html", model},
      {"plan", model, "--config", config, "-o", config},
      {"run", model, "--data", data, "--config", config, "--checkpoint", config,
       "--overwrite"},
      {"report", model, "--config=" + config, "--html", config},
      {"doctor", "l4", "--config", empty, "-o", empty},
  };
  for (const std::vector<std::string>& command : commands) {
    const CommandOutput output = RunInProcess(command);
    EXPECT_EQ(output.exit_code, 2) << command[0] << ": " << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr("name another file"));
    EXPECT_EQ(*ReadFile(model) + *ReadFile(data) + *ReadFile(config) +
                  *ReadFile(empty),
              before);
  }
}

TEST(CheckOutputPaths, FindsAMissingFolderBeforeAnyWork) {
  const std::string model = ZooPath("mlp.onnx");
  const std::string data = ZooPath("digits-train.npz");
  const std::string machine = FixedMachinePath();
  const std::vector<std::vector<std::string>> commands = {
      {"run", model, "--data", data, "--steps", "1", "--metrics", "/no/f/x"},
      {"plan", model, "--machine", machine, "-o", "/no/f/x"},
      {"plan", model, "--machine", machine, "--problem", "/no/f/x"},
      {"pose", model, "--machine", machine, "-o", "/no/f/x"},
      {"report", model, "--machine", machine, "--html", "/no/f/x"},
      {"report", model, "--machine", machine, "--csv", "/no/f/x"},
      {"sweep", model, "--machine", machine, "--html", "/no/f/x"},
      {"sensitivity", model, "--data", data, "-o", "/no/f/x"},
      {"pack", "/no/buffers.csv", "--capacity", "1", "-o", "/no/f/x"},
      {"doctor", "l4", "-o", "/no/f/x"},
  };
  for (const std::vector<std::string>& command : commands) {
    const CommandOutput output = RunInProcess(command);
    EXPECT_EQ(output.exit_code, 2) << command[0] << ": " << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_EQ(output.err,
              "loadline: /no/f/x: the folder /no/f does not exist\n")
        << command[0];
  }
}

}  // namespace
}  // namespace loadline::tools
