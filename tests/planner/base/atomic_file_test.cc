#include "planner/base/atomic_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace loadline::planner {
namespace {

namespace fs = std::filesystem;

std::string Folder() {
  const std::string folder =
      testing::TempDir() + "/atomic_file_" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int Entries(const std::string& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(AtomicFile, AppearsOnlyOnceItIsCommitted) {
  const std::string folder = Folder(), path = folder + "/file";
  ASSERT_TRUE(WriteWholeFile(path, "old").ok());
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("new", 3).ok());
  EXPECT_EQ(Contents(path), "old");
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(Contents(path), "new");
  EXPECT_EQ(Entries(folder), 1);
}

TEST(AtomicFile, KeepsTheLinkAndThePermissionsOfWhatItReplaces) {
  const std::string folder = Folder();
  fs::create_directory(folder + "/there");
  fs::create_symlink("there/second", folder + "/link");
  fs::create_symlink("file", folder + "/there/second");
  ASSERT_TRUE(WriteWholeFile(folder + "/link", "new").ok());
  EXPECT_EQ(Contents(folder + "/there/file"), "new");
  fs::permissions(folder + "/there/file", fs::perms::owner_read);
  ASSERT_TRUE(WriteWholeFile(folder + "/link", "newer").ok());
  EXPECT_EQ(Contents(folder + "/there/file"), "newer");
  EXPECT_EQ(fs::status(folder + "/there/file").permissions(),
            fs::perms::owner_read);
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_TRUE(fs::is_symlink(folder + "/there/second"));
  EXPECT_EQ(Entries(folder), 2);
}

TEST(AtomicFile, ReportsACircleOfLinks) {
  const std::string folder = Folder();
  fs::create_symlink("b", folder + "/a");
  fs::create_symlink("a", folder + "/b");
  EXPECT_FALSE(WriteWholeFile(folder + "/a", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder + "/a"));
}

TEST(AtomicFile, LeavesNothingBehindWithoutACommit) {
  const std::string folder = Folder(), path = folder + "/file";
  ASSERT_TRUE(WriteWholeFile(path, "old").ok());
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write("new", 3).ok());
    EXPECT_EQ(Entries(folder), 2);
  }
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(Entries(folder), 1);
}

// A checkpoint of gigabytes each time a run is killed while it saves.
TEST(AtomicFile, RemovesWhatAKilledWriterLeft) {
  const std::string folder = Folder(), path = folder + "/file";
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::Create(path);
    if (file.ok()) (void)(*file)->Write("half", 4);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(Entries(folder), 1);
  ASSERT_TRUE(WriteWholeFile(folder + "/other", "x").ok());
  EXPECT_EQ(Entries(folder), 2) << "removed another file's";
  ASSERT_TRUE(WriteWholeFile(path, "whole").ok());
  EXPECT_EQ(Contents(path), "whole");
  EXPECT_EQ(Entries(folder), 2);
}

TEST(AtomicFile, LeavesTheFileOfALivingWriter) {
  const std::string folder = Folder(), path = folder + "/file";
  auto first = AtomicFile::Create(path);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE((*first)->Write("first", 5).ok());
  ASSERT_TRUE(WriteWholeFile(path, "second").ok());
  EXPECT_EQ(Entries(folder), 2);
  ASSERT_TRUE((*first)->Commit().ok());
  EXPECT_EQ(Contents(path), "first");
}

TEST(AtomicFile, ServesSeveralWritersOfOnePath) {
  const std::string path = Folder() + "/file";
  std::vector<std::thread> writers;
  std::atomic<int> failed = 0;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      const std::string text(1000, static_cast<char>('a' + w));
      for (int i = 0; i < 100; ++i) failed += !WriteWholeFile(path, text).ok();
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(std::filesystem::file_size(path), 1000u);
}

TEST(AtomicFile, LeavesFilesThatOnlyLookAlike) {
  const std::string folder = Folder(), path = folder + "/file";
  const std::string outside = folder + "/outside";
  std::ofstream(outside) << "mine";
  fs::create_symlink(outside, path + ".loadline-tmp-aaaaaa");
  std::ofstream(path + ".loadline-tmp-old") << "mine";
  fs::create_directory(path + ".loadline-tmp-bbbbbb");
  ASSERT_TRUE(WriteWholeFile(path, "new").ok());
  EXPECT_EQ(Entries(folder), 5);
  EXPECT_EQ(Contents(outside), "mine");
}

// As root a rename would replace the device node itself.
TEST(AtomicFile, WritesToADeviceInsteadOfReplacingIt) {
  const std::string folder = Folder(), path = folder + "/link";
  fs::create_symlink("/dev/null", path);
  ASSERT_TRUE(WriteWholeFile(path, "gone").ok());
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_TRUE(fs::is_character_file(path));
  EXPECT_EQ(Entries(folder), 1);
}

TEST(AtomicFile, NamesThePathOfAFullDevice) {
  const absl::Status status = WriteWholeFile("/dev/full", "bytes");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("/dev/full"), absl::string_view::npos);
}

TEST(AtomicFile, NamesAFolderThatIsMissing) {
  const absl::Status status = WriteWholeFile(Folder() + "/no/file", "bytes");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("/no/file"), absl::string_view::npos);
}

}  // namespace
}  // namespace loadline::planner
