#include "planner/base/sha256.h"

#include <gtest/gtest.h>

namespace loadline::planner {
namespace {

// The examples of FIPS 180-4.
constexpr char kOfAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kOfNothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Sha256Hex, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256Hex("abc"), kOfAbc);
  EXPECT_EQ(Sha256Hex(""), kOfNothing);
}

TEST(Sha256, IsTheSameForAnyPartsOfTheBytes) {
  Sha256 hash;
  hash.Add("a", 1);
  hash.Add("", 0);
  hash.Add("bc", 2);
  EXPECT_EQ(hash.HexDigest(), kOfAbc);
}

TEST(Sha256, TellsListsOfTextsApart) {
  Sha256 one;
  one.AddText("ab");
  one.AddText("c");
  Sha256 other;
  other.AddText("a");
  other.AddText("bc");
  EXPECT_NE(one.HexDigest(), other.HexDigest());
}

}  // namespace
}  // namespace loadline::planner
