// Both stores keep what is written, stay within their bytes and leave no files.
#include "executor/cpu/host_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "executor/measure/resident_memory.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

void CheckKeepsWhatIsWritten(HostStore& store) {
  std::vector<uint8_t> mirror(store.bytes(), 0);
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const int64_t offset = random() % store.bytes();
    const int64_t bytes = random() % (store.bytes() - offset + 1);
    for (int64_t i = 0; i < bytes; ++i) mirror[offset + i] = random();
    ASSERT_TRUE(store.Write(offset, mirror.data() + offset, bytes).ok());
    std::vector<uint8_t> all(store.bytes());
    ASSERT_TRUE(store.Read(0, all.data(), store.bytes()).ok());
    ASSERT_EQ(all, mirror);
  }
  uint8_t byte = 0;
  EXPECT_EQ(store.Write(store.bytes(), &byte, 1).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(store.Read(-1, &byte, 1).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(store.Read(INT64_MAX, &byte, 1).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(MemoryStore, KeepsWhatIsWritten) {
  auto store = MakeMemoryStore(5000);
  ASSERT_TRUE(store.ok());
  CheckKeepsWhatIsWritten(**store);
}

TEST(FileStore, KeepsWhatIsWrittenAndLeavesNoFile) {
  const std::string path = TemporaryPath("store");
  auto store = MakeFileStore(path, 5000);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE(std::filesystem::exists(path));
  CheckKeepsWhatIsWritten(**store);
}

TEST(FileStore, RefusesAFileThatIsThere) {
  const std::string path = TemporaryPath("precious");
  std::ofstream(path) << "mine";
  EXPECT_EQ(MakeFileStore(path, 100).status().code(),
            absl::StatusCode::kAlreadyExists);
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "mine");
}

TEST(FileStore, SaysAtOnceThatTheDiskIsFull) {
  const std::string path = TemporaryPath("large");
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = {10000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = MakeFileStore(path, 1 << 20).status();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find(path), absl::string_view::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, IsAFileWithoutANameInAFolder) {
  const std::string folder = TemporaryPath("store_folder");
  std::filesystem::create_directory(folder);
  auto store = MakeFileStore(folder, 5000);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  CheckKeepsWhatIsWritten(**store);
}

// What is copied out of the arena must not become resident elsewhere.
TEST(FileStore, IsNotResident) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const std::vector<std::byte> block(1 << 20, std::byte{7});
  auto store = MakeFileStore(TemporaryPath("resident"), kBytes);
  ASSERT_TRUE(store.ok()) << store.status();
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  for (int64_t at = 0; at < kBytes; at += std::ssize(block)) {
    ASSERT_TRUE((*store)->Write(at, block.data(), std::ssize(block)).ok());
  }
  EXPECT_LT(ResidentBytes() - before, kBytes / 8);
}

// On every file system that is mounted here and that the test knows.
TEST(IsInMemory, TellsTmpfsFromADisk) {
  const std::set<std::string> memory = {"tmpfs", "ramfs"};
  const std::set<std::string> disk = {"ext2",  "ext3",    "ext4", "xfs",
                                      "btrfs", "overlay", "9p"};
  // A later mount may hide an earlier one: the last one of a folder counts.
  std::map<std::string, std::string> type_of;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device, folder, type;
    fields >> device >> folder >> type;
    type_of[folder] = type;
  }
  int known = 0;
  for (const auto& [folder, type] : type_of) {
    // A file may be mounted, too; and its name may have escapes.
    if (!std::filesystem::is_directory(folder)) continue;
    if (!memory.contains(type) && !disk.contains(type)) continue;
    ++known;
    EXPECT_EQ(IsInMemory(folder), memory.contains(type)) << folder << type;
    EXPECT_EQ(IsInMemory(folder + "/no/such/file"), memory.contains(type))
        << folder << type;
  }
  EXPECT_GT(known, 0);
}

TEST(FileStore, NamesAFolderThatIsNotThere) {
  const absl::Status status =
      MakeFileStore(TemporaryPath("no/such/folder"), 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("no/such/folder"), absl::string_view::npos);
}

}  // namespace
}  // namespace loadline::executor
