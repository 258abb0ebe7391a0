// Only sound headers are accepted, and nothing crashes the reader.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "executor/files/npy.h"

namespace loadline::executor {
namespace {

std::string Npy(const std::string& dictionary, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(dictionary.size() >> (8 * i));
  }
  return bytes + dictionary;
}

absl::StatusOr<NpyHeader> Parse(const std::string& bytes) {
  return ParseNpyHeader(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string Dictionary(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr +
         "', 'fortran_order': False, 'shape': " + shape + ", }          \n";
}

TEST(ParseNpyHeader, ReadsWhatNumPyWrites) {
  for (int major : {1, 2, 3}) {
    const std::string bytes = Npy(Dictionary("<f4", "(3, 4)"), major);
    const auto header = Parse(bytes + "data");
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, models::DType::kF32);
    EXPECT_EQ(header->shape, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(header->header_bytes, static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(header->data_bytes, 48);
  }
  EXPECT_EQ(Parse(Npy(Dictionary("<i8", "()")))->data_bytes, 8);
  EXPECT_EQ(Parse(Npy(Dictionary("|b1", "(7,)")))->data_bytes, 7);
  EXPECT_EQ(Parse(Npy(Dictionary("<f2", "(0, 5)")))->data_bytes, 0);
}

TEST(ParseNpyHeader, RefusesEverythingElse) {
  for (const std::string& bad : {
           std::string(),
           std::string("\x93NUMPY"),
           std::string("PK\x03\x04 not an array"),
           Npy("{}"),
           Npy(Dictionary(">f4", "(3,)")),
           Npy(Dictionary("|O", "(3,)")),
           Npy(Dictionary("<U8", "(3,)")),
           Npy(Dictionary("<f4", "(3)")),
           Npy(Dictionary("<f4", "(3 4)")),
           Npy(Dictionary("<f4", "(-3,)")),
           Npy(Dictionary("<f4", "3")),
           Npy(Dictionary("<f4", "(3, 4")),
           Npy(Dictionary("<f4", "(99999999999999999999,)")),
           Npy(Dictionary("<f4", "(4294967296, 4294967296)")),
           Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}"),
           Npy("{'descr': '<f4', 'shape': (3,)}"),
           Npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
               "'shape': (3,)}"),
           Npy("{'descr': [('a', '<f4')], 'fortran_order': False, "
               "'shape': (3,)}"),
           Npy(Dictionary("<f4", "(3,)") + "{"),
           Npy(Dictionary("<f4", "(3,)"), 4),
           Npy(Dictionary("<f4", "(3,)"), 0),
           Npy(Dictionary("<f4", "(3,)")).substr(0, 40),
       }) {
    EXPECT_EQ(Parse(bad).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
  std::string huge_length = Npy(Dictionary("<f4", "(3,)"), 2);
  huge_length[11] = '\xff';
  EXPECT_FALSE(Parse(huge_length).ok());
}

TEST(ParseNpyHeader, SaysWhatToDoAboutFortranOrder) {
  const auto header =
      Parse(Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }"));
  EXPECT_NE(header.status().message().find("ascontiguousarray"),
            absl::string_view::npos);
}

TEST(ParseNpyHeader, SurvivesSeededDamage) {
  const std::string sound = Npy(Dictionary("<f4", "(3, 4)"));
  std::mt19937 random(11);
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = sound;
    for (int hits = 1 + random() % 3; hits > 0; --hits) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto header = Parse(bytes);
    if (!header.ok()) continue;
    ++accepted;
    EXPECT_LE(header->header_bytes, static_cast<int64_t>(bytes.size()));
    EXPECT_GE(header->data_bytes, 0);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

}  // namespace
}  // namespace loadline::executor
