// Archives as NumPy writes them, and malformed ones.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "executor/files/npy.h"
#include "tests/executor/support/npz_files.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ReadNpz, ReadsStoredAndCompressedArrays) {
  const std::string data = "0123456789abcdef";
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"x.npy", NpyFile("<f4", "(2, 2)", data)},
      {"target.npy", NpyFile("<i8", "(2,)", data)}};
  for (bool compress : {false, true}) {
    const auto arrays =
        ReadNpz(WriteZip("good.npz", entries, compress), {"target", "x"});
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    EXPECT_EQ((*arrays)[0].dtype, models::DType::kI64);
    EXPECT_EQ((*arrays)[1].shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(std::memcmp((*arrays)[1].data.data(), data.data(), 16), 0);
  }
}

// Files of tokens are u2 or u4.
TEST(ReadNpz, WidensSmallIntegers) {
  const std::string data("\xff\xff\x01\x00\x00\x80\xff\xff", 8);
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"u2.npy", NpyFile("<u2", "(4,)", data)},
      {"i2.npy", NpyFile("<i2", "(4,)", data)},
      {"u4.npy", NpyFile("<u4", "(2,)", data)}};
  const auto arrays =
      ReadNpz(WriteZip("small.npz", entries, false), {"u2", "i2", "u4"});
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  const auto numbers = [](const NpyArray& array, auto zero) {
    std::vector<decltype(zero)> values(array.data.size() / sizeof(zero));
    std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
  };
  EXPECT_EQ((*arrays)[0].dtype, models::DType::kI32);
  EXPECT_EQ(numbers((*arrays)[0], int32_t{}),
            (std::vector<int32_t>{65535, 1, 32768, 65535}));
  EXPECT_EQ(numbers((*arrays)[1], int32_t{}),
            (std::vector<int32_t>{-1, 1, -32768, -1}));
  EXPECT_EQ((*arrays)[2].dtype, models::DType::kI64);
  EXPECT_EQ(numbers((*arrays)[2], int64_t{}),
            (std::vector<int64_t>{131071, 4294934528}));
}

TEST(ReadNpz, NamesWhatIsMissing) {
  const std::string path =
      WriteZip("some.npz", {{"a.npy", NpyFile("<f4", "(1,)", "1234")}}, false);
  const absl::Status status = ReadNpz(path, {"b"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("it has: a"), absl::string_view::npos);
  EXPECT_EQ(ReadNpz(TemporaryPath("none.npz"), {"b"}).status().code(),
            absl::StatusCode::kNotFound);
}

// As an archive that was appended to has it.
TEST(ReadNpz, RefusesTwoArraysOfOneName) {
  const std::string path = WriteZip("twice.npz",
                                    {{"x.npy", NpyFile("<f4", "(1,)", "1234")},
                                     {"y.npy", NpyFile("<f4", "(1,)", "5678")}},
                                    false);
  std::string archive = ReadAll(path);
  for (size_t at = archive.find("y.npy"); at != std::string::npos;
       at = archive.find("y.npy")) {
    archive[at] = 'x';
  }
  std::ofstream(path, std::ios::binary) << archive;
  const absl::Status status = ReadNpz(path, {"x"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("two arrays 'x'"), absl::string_view::npos);
}

TEST(ReadNpz, RefusesDataThatIsNotWhatTheHeaderSays) {
  for (const std::string& contents :
       {NpyFile("<f4", "(3,)", "12345678"), NpyFile("<f4", "(1,)", "12345678"),
        NpyFile("<f8", "(1000000000000,)", "12345678"), std::string("junk")}) {
    const std::string path = WriteZip("bad.npz", {{"x.npy", contents}}, true);
    const absl::Status status = ReadNpz(path, {"x"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("array 'x'"), absl::string_view::npos);
  }
}

TEST(ReadNpz, SurvivesSeededDamage) {
  const std::string path = WriteZip(
      "whole.npz", {{"x.npy", NpyFile("<f4", "(50,)", std::string(200, 'z'))}},
      true);
  const std::string whole = ReadAll(path);
  const std::string damaged_path = TemporaryPath("damaged.npz");
  std::mt19937 random(2);
  int refused = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (trial % 3 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(damaged_path, std::ios::binary) << bytes;
    const auto arrays = ReadNpz(damaged_path, {"x"});
    if (!arrays.ok()) ++refused;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace loadline::executor
