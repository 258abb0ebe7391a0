// Data that stays in its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/end_to_end/run_command.h"
#include "tests/executor/support/npy_bytes.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> RunOn(const std::string& data,
                               const std::vector<std::string>& more) {
  std::vector<std::string> args = {"run", Zoo("mlp.onnx"), "--data",
                                   data,  "--json",        "--no-calibrate"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

void WriteArray(const std::string& path, const std::string& descr,
                const std::string& shape, const std::string& data) {
  std::ofstream(path, std::ios::binary)
      << executor::NpyFile(descr, shape, data);
}

// Examples of the digits' shapes. Zeros are a hole in the file, so that the
// disk has room for many.
std::string MakeData(const std::string& name, int64_t examples, bool zeros) {
  std::string folder = TestFolder(name);
  std::mt19937 random(7);
  std::string images(zeros ? 0 : static_cast<size_t>(examples) * 256, '\0');
  for (size_t i = 0; i < images.size(); i += sizeof(float)) {
    const float pixel = static_cast<float>(random() % 17) / 16;
    std::memcpy(images.data() + i, &pixel, sizeof(pixel));
  }
  std::string targets(static_cast<size_t>(examples), '\0');
  for (char& target : targets) target = static_cast<char>(random() % 10);
  const std::string n = std::to_string(examples);
  const std::string image = folder + "/image.npy";
  WriteArray(image, "<f4", "(" + n + ", 1, 8, 8)", images);
  WriteArray(folder + "/target.npy", "|u1", "(" + n + ",)", targets);
  if (zeros) {
    std::filesystem::resize_file(image,
                                 std::filesystem::file_size(image) +
                                     static_cast<size_t>(examples) * 256);
  }
  return folder;
}

TEST(StoredData, TrainsTheBitsOfDataInMemory) {
  const std::string data = MakeData("stored", 500, /*zeros=*/false);
  const auto memory = RunLoadline(RunOn(data, {"--epochs", "3"}));
  ASSERT_EQ(memory.exit_code, 0) << memory.err;
  const auto stored =
      RunLoadline(RunOn(data, {"--epochs", "3", "--data-memory", "0B"}));
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_EQ(stored.json()["weights_sha256"], memory.json()["weights_sha256"]);
  EXPECT_EQ(stored.json()["losses"], memory.json()["losses"]);
}

TEST(StoredData, NeedsNoMemoryForData) {
  constexpr long kLimitBytes = 256L << 20;
  const std::string data = MakeData("huge", 4 * kLimitBytes / 256, true);
  const CommandOptions options = {.data_bytes_limit = kLimitBytes};
  const auto stored = RunLoadline(
      RunOn(data, {"--steps", "20", "--data-memory", "16MiB"}), options);
  EXPECT_EQ(stored.exit_code, 0) << stored.err;
  const auto memory = RunLoadline(
      RunOn(data, {"--steps", "20", "--data-memory", "2GiB"}), options);
  EXPECT_NE(memory.exit_code, 0);
}

// Of an example in the last micro-batch, in memory and stored.
TEST(StoredData, NamesTheExampleThatIsNoNumber) {
  const std::string data = MakeData("nan", 64, /*zeros=*/true);
  const std::string path = data + "/image.npy";
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const uint32_t nan = 0x7fc00000;
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path)) -
             3 * 256);  // the image of example 61
  file.write(reinterpret_cast<const char*>(&nan), sizeof(nan));
  file.close();
  for (const char* parts : {"1", "4"}) {
    for (const char* memory : {"1GiB", "0B"}) {
      const auto run = RunLoadline(
          RunOn(data, {"--steps", "2", "--no-shuffle", "--micro-batches", parts,
                       "--data-memory", memory}));
      EXPECT_EQ(run.exit_code, 2);
      EXPECT_THAT(run.err, HasSubstr("at step 2 of 2; 'image' has an infinity "
                                     "or NaN in example 61 of the data"));
    }
  }
}

TEST(StoredData, NamesWhatAFolderLacks) {
  const std::string folder = TestFolder("lacks");
  const auto result = RunLoadline(RunOn(folder, {"--steps", "1"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("lacks/image.npy: no such file"));
  const std::string data = MakeData("clash", 64, /*zeros=*/true);
  const auto clash =
      RunLoadline(RunOn(data, {"--steps", "1", "-o", data + "/image.npy"}));
  EXPECT_EQ(clash.exit_code, 2);
  EXPECT_THAT(clash.err, HasSubstr("--data"));
  const auto unit =
      RunLoadline(RunOn(folder, {"--steps", "1", "--data-memory", "17"}));
  EXPECT_EQ(unit.exit_code, 2);
}

}  // namespace
}  // namespace loadline
