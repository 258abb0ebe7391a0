// Every character is read as itself, and every other byte by itself.
#include "planner/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"
#include "planner/base/random.h"

namespace loadline::planner {
namespace {

TEST(Utf8, ReadsCharactersOfEveryLength) {
  absl::string_view text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x9A\xA2";
  EXPECT_TRUE(IsUtf8(text));
  for (int32_t expected : {0x61, 0xE4, 0x20AC, 0x1F6A2}) {
    EXPECT_EQ(TakeUtf8(&text), expected);
  }
  EXPECT_TRUE(text.empty());
}

TEST(Utf8, ReplacesWhatIsNoCharacter) {
  // Alone, cut off, overlong, a surrogate, above the last character.
  for (const char* text : {"\x80", "\xFF", "\xC3", "\xE2\x82", "\xC0\xAF",
                           "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text));
    std::string expected;
    for (size_t i = 0; i < std::string(text).size(); ++i) {
      expected += kReplacementCharacter;
    }
    EXPECT_EQ(ReplaceInvalidUtf8(text), expected);
  }
  EXPECT_EQ(ReplaceInvalidUtf8("w\xFF\xC3\xA4"),
            std::string("w") + kReplacementCharacter + "\xC3\xA4");
}

// Against another reader.
TEST(Utf8, AgreesWithALibraryOnRandomBytes) {
  Random random(1);
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int64_t left = random.Below(5); left >= 0; --left) {
      const int64_t kind = random.Below(3);
      text.push_back(static_cast<char>(kind == 0   ? random.Below(128)
                                       : kind == 1 ? 0x80 + random.Below(64)
                                                   : random.Below(256)));
    }
    const bool expected =
        !nlohmann::json(text)
             .dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore)
             .empty() &&
        nlohmann::json(text).dump(-1, ' ', false,
                                  nlohmann::json::error_handler_t::ignore) ==
            nlohmann::json(text).dump(-1, ' ', false,
                                      nlohmann::json::error_handler_t::replace);
    EXPECT_EQ(IsUtf8(text), expected) << testing::PrintToString(text);
    EXPECT_TRUE(IsUtf8(ReplaceInvalidUtf8(text)));
    valid += IsUtf8(text);
  }
  EXPECT_GT(valid, 2'000);
  EXPECT_LT(valid, 18'000);
}

}  // namespace
}  // namespace loadline::planner
