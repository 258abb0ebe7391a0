#include "tools/cli/nearest_word.h"

#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

TEST(NearestWord, TakesTheFewestChanges) {
  const std::vector<std::string> verbs = {"plan", "pose", "pack", "run"};
  EXPECT_EQ(NearestWord("plna", verbs), "plan");
  EXPECT_EQ(NearestWord("pla", verbs), "plan");
  EXPECT_EQ(NearestWord("planning", verbs), "plan");
  EXPECT_EQ(NearestWord("ruun", verbs), "run");
  EXPECT_EQ(NearestWord("--bugdet", {"--batch", "--budget"}), "--budget");
  EXPECT_EQ(NearestWord("rtx4090", {"rtx-3090", "rtx-4090"}), "rtx-4090");
}

TEST(NearestWord, IsNoneWhereNothingIsNear) {
  EXPECT_EQ(NearestWord("train", {"plan", "pose", "run"}), "");
  EXPECT_EQ(NearestWord("", {"plan"}), "");
  EXPECT_EQ(NearestWord("p", {"plan"}), "");
  EXPECT_EQ(DidYouMean("train", {"plan"}), "");
  EXPECT_EQ(DidYouMean("plna", {"plan"}), "; did you mean 'plan'?");
}

}  // namespace
}  // namespace loadline::tools
