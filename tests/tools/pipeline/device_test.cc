// The values of --device, and the errors without such a device. Independent of
// the machine; tests/gpu needs a GPU.
#include "tools/pipeline/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/cpu/host_store.h"
#include "executor/measure/resident_memory.h"
#include "tests/tools/support/environment.h"
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

TEST(MakeDevice, KeepsNoFileBesideAnEmulatedDevice) {
  const auto device = MakeDevice(kEmulated, "store.bin");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(device.status().message()),
              HasSubstr("--emulate-device"));
}

TEST(MakeDevice, RefusesAHostStoreInMemory) {
  if (!executor::IsInMemory("/dev/shm")) GTEST_SKIP() << "no tmpfs";
  const auto device = MakeDevice(kCpu, "/dev/shm/store");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(device.status().message()),
              HasSubstr("--host-store /dev/shm/store"));
}

// On a CPU a copy frees memory only if it goes to a disk.
TEST(MakeDevice, CopiesOfTheCpuLeaveMemory) {
  if (!executor::IsInMemory("/dev/shm") ||
      executor::IsInMemory(LOADLINE_SOURCE_DIR)) {
    GTEST_SKIP() << "no tmpfs, or sources in memory";
  }
  const ScopedEnvironment in_memory("TMPDIR", "/dev/shm");
  EXPECT_NE(HostStoreFolder(), "/dev/shm");
  const ScopedEnvironment on_disk("TMPDIR", LOADLINE_SOURCE_DIR);
  EXPECT_EQ(HostStoreFolder(), LOADLINE_SOURCE_DIR);
  constexpr int64_t kBytes = int64_t{64} << 20;
  const std::vector<std::byte> block(kBytes / 16, std::byte{7});
  for (const char* name : {kCpu, kEmulated}) {
    const auto device = MakeDevice(name);
    ASSERT_TRUE(device.ok()) << device.status();
    ASSERT_TRUE(
        (*device)->CreateArena({.arena_bytes = 0, .host_bytes = kBytes}).ok());
    const int64_t before = executor::ResidentBytes();
    for (int64_t at = 0; at < kBytes; at += std::ssize(block)) {
      ASSERT_TRUE((*device)
                      ->Write(executor::Space::kHost, at, block.data(),
                              std::ssize(block))
                      .ok());
    }
    const int64_t taken = executor::ResidentBytes() - before;
    if (name == kCpu) {
      EXPECT_LT(taken, kBytes / 8);
    } else {
      EXPECT_GT(taken, kBytes / 8 * 7);
    }
  }
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
