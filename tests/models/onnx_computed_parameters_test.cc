// What torch 2.15 writes of initializers that it computed while it optimized.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/onnx/computed_parameters.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::ElementsAre;

ExportMarks Computed(const std::string& name,
                     const std::vector<std::string>& sources) {
  ExportMarks marks;
  marks.marks = {{"w", Mark::kParameter},
                 {"fc.bias", Mark::kParameter},
                 {"mask", Mark::kBuffer}};
  marks.computed_from[name] = sources;
  return marks;
}

bool IsMoved(const std::string& name, const std::vector<std::string>& sources) {
  return FindMovedParameter(Computed(name, sources), name).has_value();
}

TEST(FindMovedParameter, ReadsTheNamesOfWhatWasFolded) {
  const auto moved = FindMovedParameter(
      Computed("t_12", {"unsqueeze_1", "w", "val_3"}), "t_12");
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->parameter, "w");
  EXPECT_FALSE(moved->part);
  EXPECT_THAT(moved->moves, ElementsAre("t", "unsqueeze", "val"));
  EXPECT_TRUE(IsMoved("val_4", {"w"}));
}

TEST(FindMovedParameter, TellsParts) {
  EXPECT_TRUE(
      FindMovedParameter(Computed("slice_2", {"slice_1", "w"}), "slice_2")
          ->part);
  EXPECT_TRUE(
      FindMovedParameter(Computed("getitem", {"split", "w"}), "getitem")->part);
}

TEST(FindMovedParameter, TakesNoOther) {
  EXPECT_FALSE(IsMoved("exp", {"w"}));
  EXPECT_FALSE(IsMoved("t", {"exp", "w"}));
  EXPECT_FALSE(IsMoved("val_0", {"softplus", "tmp", "w"}));
  EXPECT_FALSE(IsMoved("t", {"w", "mask"}));
  EXPECT_FALSE(IsMoved("cat", {"w", "fc.bias"}));
  EXPECT_FALSE(IsMoved("t", {"mask"}));
  EXPECT_FALSE(IsMoved("t", {"val_1"}));
  EXPECT_FALSE(IsMoved("w", {}));
  // Elements that are there several times.
  EXPECT_FALSE(IsMoved("expand", {"w"}));
  EXPECT_FALSE(FindMovedParameter(Computed("t", {"w"}), "u").has_value());
}

}  // namespace
}  // namespace loadline::models::onnx_internal
