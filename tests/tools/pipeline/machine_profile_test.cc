// Where the profile is stored, and what happens if it cannot be read.
#include "tools/pipeline/machine_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/tools/support/environment.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string EmptyFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  return folder.string();
}

planner::Machine Made() {
  planner::Machine machine;
  machine.name = "made for a test";
  machine.device_bytes = 1 << 20;
  machine.ops["MatMul f32"] = 17;
  return machine;
}

TEST(OwnProfilePath, FollowsTheCacheVariables) {
  const ScopedEnvironment home("HOME", "/h");
  {
    const ScopedEnvironment own("LOADLINE_CACHE", "/own");
    EXPECT_EQ(OwnProfilePath(kCpu), "/own/machine-cpu.json");
    EXPECT_EQ(OwnProfilePath(kCuda), "/own/machine-cuda.json");
    EXPECT_EQ(OwnProfilePath(kEmulated), "/own/machine-emulated.json");
  }
  const ScopedEnvironment none("LOADLINE_CACHE", nullptr);
  {
    const ScopedEnvironment xdg("XDG_CACHE_HOME", "/x");
    EXPECT_EQ(OwnProfilePath(kCpu), "/x/loadline/machine-cpu.json");
  }
  const ScopedEnvironment no_xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(OwnProfilePath(kCpu), "/h/.cache/loadline/machine-cpu.json");
  const ScopedEnvironment no_home("HOME", nullptr);
  EXPECT_EQ(OwnProfilePath(kCpu),
            absl::StrCat(getpwuid(getuid())->pw_dir,
                         "/.cache/loadline/machine-cpu.json"));
}

TEST(LoadProfile, ReadsBackWhatWasKept) {
  const std::string path = EmptyFolder("profile_kept") + "/a/machine.json";
  ASSERT_TRUE(KeepProfile(path, Made()).ok());
  const auto machine = LoadProfile(kCpu, path);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(planner::MachineToJson(*machine), planner::MachineToJson(Made()));
}

// Several runs that share a cache each measure their own model.
TEST(AddToProfile, KeepsWhatOthersMeasuredAtTheSameTime) {
  constexpr int kRuns = 8, kOperators = 10;
  const std::string path = EmptyFolder("profile_shared") + "/machine.json";
  ASSERT_TRUE(KeepProfile(path, Made()).ok());
  std::vector<std::thread> runs;
  for (int run = 0; run < kRuns; ++run) {
    runs.emplace_back([run, &path] {
      planner::Machine mine = Made();
      for (int i = 0; i < kOperators; ++i) {
        const std::string key = absl::StrCat("run ", run, " op ", i);
        mine.ops[key] = run;
        mine.algorithms[key] = "fast";
        EXPECT_TRUE(AddToProfile(path, mine).ok());
      }
    });
  }
  for (std::thread& run : runs) run.join();
  const auto machine = LoadProfile(kCpu, path);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->ops.size(), size_t{1 + kRuns * kOperators});
  EXPECT_EQ(machine->algorithms.size(), size_t{kRuns * kOperators});
}

TEST(AddToProfile, KeepsTheFirstTimeOfAnOperator) {
  const std::string path = EmptyFolder("profile_first") + "/machine.json";
  ASSERT_TRUE(KeepProfile(path, Made()).ok());
  planner::Machine later = Made();
  later.ops = {{"MatMul f32", 99}, {"Relu", 5}};
  later.algorithms = {{"MatMul f32", "other"}};
  const auto whole = AddToProfile(path, later);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->ops.at("MatMul f32"), 17);
  EXPECT_EQ(whole->ops.at("Relu"), 5);
  EXPECT_TRUE(whole->algorithms.empty());
}

TEST(LoadProfile, NamesTheFileItCannotRead) {
  const std::string folder = EmptyFolder("profile_broken");
  const auto missing = LoadProfile(kCpu, folder + "/none.json");
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none.json"));
  const std::string path = folder + "/broken.json";
  fs::create_directories(folder);
  ASSERT_TRUE(WriteFile(path, "{").ok());
  const auto broken = LoadProfile(kCpu, path);
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr("broken.json"));
}

TEST(LoadProfile, MeasuresAnewWhereTheKeptOneIsBroken) {
  const std::string folder = EmptyFolder("profile_anew");
  const ScopedEnvironment own("LOADLINE_CACHE", folder.c_str());
  fs::create_directories(folder);
  ASSERT_TRUE(WriteFile(OwnProfilePath(kCpu), "{").ok());
  const auto machine = LoadProfile(kCpu, "");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_GT(machine->device_bytes, 0);
  // The measured profile has replaced it.
  EXPECT_TRUE(LoadProfile(kCpu, OwnProfilePath(kCpu)).ok());
}

// Such as one of a GPU, copied there by hand: nobody gave --machine, so nothing
// may ask to leave it out.
TEST(LoadProfile, MeasuresAnewWhereTheKeptOneIsNominal) {
  const std::string folder = EmptyFolder("profile_nominal");
  const ScopedEnvironment own("LOADLINE_CACHE", folder.c_str());
  planner::Machine kept = Made();
  kept.nominal = true;
  ASSERT_TRUE(KeepProfile(OwnProfilePath(kCpu), kept).ok());
  const auto machine = LoadProfile(kCpu, "");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_FALSE(machine->nominal);
  EXPECT_NE(machine->name, kept.name);
  EXPECT_TRUE(CheckIsHere(*LoadProfile(kCpu, OwnProfilePath(kCpu))).ok());
}

// Measured while a small budget allowed little memory.
TEST(LoadProfile, MeasuresAProvisionalOneAgainOnceItMay) {
  const std::string folder = EmptyFolder("profile_provisional");
  const ScopedEnvironment own("LOADLINE_CACHE", folder.c_str());
  planner::Machine kept = Made();
  kept.provisional = "little memory";
  ASSERT_TRUE(KeepProfile(OwnProfilePath(kCpu), kept).ok());
  const auto small = [] { return int64_t{40} << 20; };
  const auto same = LoadProfile(kCpu, "", small);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->name, kept.name);
  const auto measured = LoadProfile(kCpu, "");
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_NE(measured->name, kept.name);
  EXPECT_EQ(measured->provisional, "");
  EXPECT_EQ(measured->ops, kept.ops);
  EXPECT_EQ(LoadProfile(kCpu, "")->provisional, "");
  const auto limit = []() -> absl::StatusOr<int64_t> {
    ADD_FAILURE() << "nothing is measured";
    return 0;
  };
  EXPECT_TRUE(LoadProfile(kCpu, "", limit).ok());
}

TEST(LoadProfile, TakesAKeptProfileOfVersion1) {
  const std::string folder = EmptyFolder("profile_version_1");
  const ScopedEnvironment own("LOADLINE_CACHE", folder.c_str());
  ASSERT_TRUE(MakeFolderOf(OwnProfilePath(kCpu)).ok());
  const auto write = [](const char* extra) {
    std::ofstream(OwnProfilePath(kCpu))
        << R"({"format":"loadline.machine/1","name":"kept","device_bytes":5,)"
        << R"("reserved_bytes":0,"ops":{"a":7},"extra":)" << extra << "}";
  };
  write(R"({"copies_stop_compute":true})");
  const auto kept = LoadProfile(kCpu, "");
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->name, "kept");
  EXPECT_TRUE(kept->copies_exclude_compute);
  EXPECT_EQ(kept->ops.at("a"), 7);
  write(R"({"provisional":"little memory"})");
  const auto small = [] { return int64_t{40} << 20; };
  EXPECT_EQ(LoadProfile(kCpu, "", small)->provisional, "little memory");
}

TEST(LoadProfile, SaysThatALimitMadeItProvisional) {
  const std::string folder = EmptyFolder("profile_little_memory");
  const ScopedEnvironment own("LOADLINE_CACHE", folder.c_str());
  const auto small = [] { return int64_t{40} << 20; };
  const auto measured = LoadProfile(kCpu, "", small);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->provisional, "little memory");
  EXPECT_GT(measured->device_bytes, 0);
  EXPECT_EQ(LoadProfile(kCpu, "", small)->provisional, "little memory");
  // Adding operators keeps it so.
  ASSERT_TRUE(AddToProfile(OwnProfilePath(kCpu), *measured).ok());
  EXPECT_EQ(LoadProfile(kCpu, "", small)->provisional, "little memory");
}

}  // namespace
}  // namespace loadline::tools
