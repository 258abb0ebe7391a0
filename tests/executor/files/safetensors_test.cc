// Malformed files are in tests/executor/train/checkpoint_test.cc and in
// tests/fuzz.
#include "executor/files/safetensors.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace loadline::executor {
namespace {

std::string WithHeader(const std::string& header) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  }
  return bytes + header;
}

// With a comparison for every pair of names this takes minutes.
TEST(ParseSafetensors, ReadsManyTensorsInProportionToTheirNumber) {
  constexpr int kTensors = 100'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"layer.", i,
                    "\":{\"dtype\":\"F32\",\"shape\":[0],"
                    "\"data_offsets\":[0,0]}");
  }
  const auto file = ParseSafetensors(WithHeader(header + "}"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->types.size(), size_t{kTensors});
}

TEST(ParseSafetensors, RefusesATensorThatIsNamedTwice) {
  const std::string tensor =
      R"("w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(ParseSafetensors(WithHeader("{" + tensor + "}")).ok());
  EXPECT_EQ(ParseSafetensors(WithHeader("{" + tensor + "," + tensor + "}"))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::executor
