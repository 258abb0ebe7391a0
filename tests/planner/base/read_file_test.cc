// Whole files come back byte for byte, and nothing without an end is read.
#include "planner/base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "planner/base/atomic_file.h"

namespace loadline::planner {
namespace {

std::string Path(const std::string& name) {
  return testing::TempDir() + "/read_file_" + name;
}

TEST(ReadWholeFile, ReturnsEveryByte) {
  for (int64_t size : {0, 1, 65535, 65536, 65537, 300'000}) {
    std::string text(static_cast<size_t>(size), '\0');
    for (int64_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
    ASSERT_TRUE(WriteWholeFile(Path("bytes"), text).ok());
    const auto read = ReadWholeFile(Path("bytes"), size);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
    if (size > 0) {
      EXPECT_EQ(ReadWholeFile(Path("bytes"), size - 1).status().code(),
                absl::StatusCode::kResourceExhausted);
    }
  }
}

TEST(ReadWholeFile, ReadsAPipeUpToTheLimit) {
  const std::string path = Path("pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "from a pipe"; });
  const auto read = ReadWholeFile(path, 100);
  writer.join();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "from a pipe");
  writer = std::thread([&] { std::ofstream(path) << "from a pipe"; });
  EXPECT_EQ(ReadWholeFile(path, 10).status().code(),
            absl::StatusCode::kResourceExhausted);
  writer.join();
}

TEST(ReadWholeFile, RefusesWhatIsNoFile) {
  const auto error = [](const std::string& path) {
    return std::string(ReadWholeFile(path, 100).status().message());
  };
  EXPECT_EQ(error("/dev/zero"), "/dev/zero: is a device");
  EXPECT_EQ(error("/dev"), "/dev: is a folder");
  EXPECT_EQ(error("/no/file"), "/no/file: no such file");
  EXPECT_EQ(error("/dev/null/file"), "/dev/null/file: no such file");
}

// A gigabyte of nothing that takes no disk.
TEST(ReadWholeFile, RefusesASparseFileWithoutReadingIt) {
  const std::string path = Path("sparse");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_EQ(ReadWholeFile(path, int64_t{1} << 30).status().message(),
            path +
                ": larger than 1.00 GiB, the most that is read of such a "
                "file");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace loadline::planner
