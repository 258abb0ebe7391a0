// The values of --device, and the errors without such a device. Independent of
// the machine; tests/gpu needs a GPU.
#include "tools/pipeline/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/support/in_process.h"

namespace loadline::tools {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(MakeDevice, MakesTheCpu) {
  const auto device = MakeDevice(kCpu);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->name(), "cpu");
  EXPECT_FALSE((*device)->has_arena());
}

TEST(MakeDevice, KeepsNoFileBesideAGpu) {
  const auto device = MakeDevice(kCuda, "store.bin");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(device.status().message()),
              StartsWith("--host-store: "));
}

// Every verb with the flag checks the device first.
TEST(MakeDevice, WithoutAGpuEveryVerbSaysWhatToDo) {
  if (MakeDevice(kCuda).ok()) GTEST_SKIP() << "there is a GPU";
  const std::string mlp = "models/zoo/mlp.onnx";
  const std::string data = "models/zoo/digits-test.npz";
  const std::string machine = "tests/tools/machine.json";
  for (std::vector<std::string> args : std::vector<std::vector<std::string>>{
           {"plan", mlp, "--machine", machine},
           {"run", mlp, "--machine", machine, "--data", data},
           {"eval", mlp, "--machine", machine, "--data", data},
           {"sweep", mlp, "--machine", machine},
           {"report", mlp, "--machine", machine},
           {"estimate", mlp, "--machine", machine},
           {"pose", mlp, "--machine", machine},
           {"check", mlp},
           {"doctor", "-o", "-"}}) {
    SCOPED_TRACE(args[0]);
    args.insert(args.end(), {"--device", "cuda"});
    const CommandOutput output = RunInProcess(args);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, StartsWith("loadline: --device cuda: "));
    EXPECT_THAT(output.err, AnyOf(HasSubstr("no GPU: the driver says "),
                                  HasSubstr("this build has no CUDA: build ")));
    EXPECT_THAT(output.err, HasSubstr("run without --device cuda"));
  }
}

// A problem file already contains its kernels' workspaces.
TEST(MakeDevice, IsNotNeededForAProblemFile) {
  EXPECT_EQ(RunInProcess(
                {"plan", "tests/tools/chain_problem.json", "--device", "cuda"})
                .exit_code,
            0);
}

TEST(MeasureCopiesOf, ChangesTheCopiesOnly) {
  planner::Machine machine;
  machine.name = "made for a test";
  machine.ops["MatMul f32"] = 17;
  const absl::Status status = MeasureCopiesOf(kCpu, machine);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(machine.CanCopy());
  EXPECT_EQ(machine.ops.at("MatMul f32"), 17);
  EXPECT_FALSE(machine.rates.has_value());
}

}  // namespace
}  // namespace loadline::tools
