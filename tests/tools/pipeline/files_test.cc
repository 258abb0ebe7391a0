// Files are read completely, and written completely or not at all.
#include "tools/pipeline/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

namespace loadline::tools {
namespace {

namespace fs = std::filesystem;

TEST(WriteFile, ReadsBackWhatWasWritten) {
  const std::string path = testing::TempDir() + "files_test_a";
  ASSERT_TRUE(WriteFile(path, std::string("a\0b", 3)).ok());
  ASSERT_TRUE(WriteFile(path, "second").ok());
  EXPECT_EQ(*ReadFile(path), "second");
}

TEST(WriteFile, LeavesTheOldFileWhenTheDiskIsFull) {
  const fs::path folder = fs::path(testing::TempDir()) / "files_test_full";
  fs::remove_all(folder);
  fs::create_directory(folder);
  const std::string path = folder / "plan.json";
  ASSERT_TRUE(WriteFile(path, "old").ok());
  // A limit on the size of files simulates a full disk.
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = WriteFile(path, std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST(ReadFile, NamesWhatIsMissing) {
  EXPECT_EQ(ReadFile("/no/such/file").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::tools
