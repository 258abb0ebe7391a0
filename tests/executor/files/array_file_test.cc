// Arrays that are read in parts have the bytes of arrays that are read whole.
#include "executor/files/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/executor/support/npz_files.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using ::testing::HasSubstr;

// 40,000 numbers of 4 bytes, more than libzip's buffers.
std::string Numbers() {
  std::string data(160'000, '\0');
  for (uint32_t i = 0; i < 40'000; ++i) {
    std::memcpy(data.data() + i * sizeof(i), &i, sizeof(i));
  }
  return data;
}

std::string Written(const std::string& name, const std::string& bytes) {
  const std::string path = TemporaryPath(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

void ExpectParts(ArrayFile& file, const std::string& data) {
  EXPECT_EQ(file.header().data_bytes, static_cast<int64_t>(data.size()));
  for (const auto& [at, bytes] : {std::pair<int64_t, int64_t>{159'996, 4},
                                  {0, 160'000},
                                  {4, 100},
                                  {80'000, 50'000},
                                  {3, 1},
                                  {160'000, 0}}) {
    std::string part(static_cast<size_t>(bytes), '?');
    ASSERT_EQ(
        file.Read(at, absl::MakeSpan(reinterpret_cast<std::byte*>(part.data()),
                                     part.size())),
        absl::OkStatus());
    EXPECT_EQ(part,
              data.substr(static_cast<size_t>(at), static_cast<size_t>(bytes)))
        << at;
  }
}

TEST(OpenNpzArray, ReadsParts) {
  const std::string data = Numbers();
  const std::string path =
      WriteZip("parts.npz",
               {{"y.npy", NpyFile("<i8", "(1,)", "01234567")},
                {"x.npy", NpyFile("<i4", "(400, 100)", data)}},
               false);
  const auto file = OpenNpzArray(path, "x");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->header().shape, (std::vector<int64_t>{400, 100}));
  ExpectParts(**file, data);
  EXPECT_EQ(OpenNpzArray(path, "z").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(OpenNpzArray, IsNullWhereTheArrayIsCompressed) {
  const auto file = OpenNpzArray(
      WriteZip("deflated.npz",
               {{"x.npy", NpyFile("<i4", "(40000,)", Numbers())}}, true),
      "x");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file, nullptr);
}

TEST(OpenNpzArray, RefusesHeadersThatLie) {
  const auto file = OpenNpzArray(
      WriteZip("lies.npz", {{"x.npy", NpyFile("<i4", "(5,)", "0123")}}, false),
      "x");
  EXPECT_THAT(
      file.status().message(),
      HasSubstr("its header asks for 20 bytes of data and 4 are there"));
}

// Found by fuzzing: libzip 1.7 cannot move within an entry of no bytes.
TEST(OpenNpzArray, RefusesAnEmptyEntry) {
  const auto file =
      OpenNpzArray(WriteZip("none.npz", {{"x.npy", ""}}, false), "x");
  EXPECT_THAT(file.status().message(), HasSubstr("no magic"));
}

TEST(OpenNpyArray, ReadsParts) {
  const std::string data = Numbers();
  const auto file =
      OpenNpyArray(Written("parts.npy", NpyFile("<i4", "(400, 100)", data)));
  ASSERT_TRUE(file.ok()) << file.status();
  ExpectParts(**file, data);
}

TEST(OpenNpyArray, NamesTheFileAndTheFault) {
  const auto message = [](const std::string& path) {
    return std::string(OpenNpyArray(path).status().message());
  };
  EXPECT_THAT(message("/nowhere/x.npy"), HasSubstr("/nowhere/x.npy: no such"));
  EXPECT_THAT(message(testing::TempDir()), HasSubstr("not a regular file"));
  EXPECT_THAT(message(Written("empty.npy", "")), HasSubstr("no magic"));
  const std::string good = NpyFile("<i4", "(2,)", "01234567");
  EXPECT_THAT(message(Written("cut.npy", good.substr(0, good.size() - 1))),
              HasSubstr("asks for 8 bytes of data and 7 are there"));
  EXPECT_THAT(message(Written("long.npy", good + "8")),
              HasSubstr("asks for 8 bytes of data and 9 are there"));
}

// Opening one waits for a writer.
TEST(OpenNpyArray, RefusesAPipeAtOnce) {
  const std::string path = TemporaryPath("pipe.npy");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(OpenNpyArray(path).status().message(),
              HasSubstr("not a regular file"));
  std::filesystem::remove(path);
}

TEST(OpenNpyArray, ReportsAFileThatHasBecomeShorter) {
  const std::string path =
      Written("shrinks.npy", NpyFile("<i4", "(40000,)", Numbers()));
  const auto file = OpenNpyArray(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, 1000);
  std::byte bytes[100];
  EXPECT_EQ((*file)->Read(100'000, absl::MakeSpan(bytes)).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace loadline::executor
