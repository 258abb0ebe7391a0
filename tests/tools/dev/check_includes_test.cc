// tools/dev/check_includes must fail on every kind of broken rule, or it guards
// nothing: each case is a tree of one file with one include.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/support/run_check.h"

namespace loadline::tools {
namespace {

// The script's exit status on a tree holding only `file` with `include`.
int CheckIncludes(const std::string& file, const std::string& include) {
  return RunCheck("check_includes", {{file, "#include " + include + "\n"}});
}

TEST(CheckIncludes, AcceptsWhatARoomMayInclude) {
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"planner/problem/plan.h\""), 0);
  EXPECT_EQ(CheckIncludes("models/a.cc", "\"planner/base/status_macros.h\""),
            0);
  EXPECT_EQ(CheckIncludes("models/a.h", "\"planner/base/check.h\""), 0);
  EXPECT_EQ(CheckIncludes("models/onnx/a.cc", "\"onnx/checker.h\""), 0);
  EXPECT_EQ(
      CheckIncludes("passes/make_problem.cc", "\"planner/problem/problem.h\""),
      0);
  EXPECT_EQ(CheckIncludes("executor/cpu/a.cc", "<oneapi/dnnl/dnnl.hpp>"), 0);
  EXPECT_EQ(CheckIncludes("executor/cpu/a.cc", "\"dnnl.hpp\""), 0);
  EXPECT_EQ(CheckIncludes("plugins/c/a.cc", "\"planner/solve/solve.h\""), 0);
  EXPECT_EQ(CheckIncludes("tools/verbs/a.cc", "\"executor/device/device.h\""),
            0);
  EXPECT_EQ(CheckIncludes("tests/end_to_end/a.cc", "\"tools/train.h\""), 0);
}

TEST(CheckIncludes, RejectsARoomThatLooksUpward) {
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/a.h", "\"executor/device/device.h\""), 1);
  EXPECT_EQ(CheckIncludes("models/a.cc", "\"planner/problem/problem.h\""), 1);
  EXPECT_EQ(CheckIncludes("models/a.cc", "\"passes/make_problem.h\""), 1);
  EXPECT_EQ(CheckIncludes("passes/a.cc", "\"executor/device/kernel.h\""), 1);
  EXPECT_EQ(CheckIncludes("executor/a.cc", "\"passes/check_plan_matches.h\""),
            1);
  EXPECT_EQ(CheckIncludes("plugins/a.cc", "\"models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("plugins/c/a.c", "\"tools/pipeline/files.h\""), 1);
  EXPECT_EQ(CheckIncludes("tools/a.cc", "\"tests/support.h\""), 1);
}

TEST(CheckIncludes, RejectsALibraryOutsideItsRoom) {
  EXPECT_EQ(CheckIncludes("models/graph.cc", "<onnx/checker.h>"), 1);
  EXPECT_EQ(CheckIncludes("passes/a.cc", "\"google/protobuf/message.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/a.cc", "<dnnl.hpp>"), 1);
}

TEST(CheckIncludes, RejectsRelativePathsAndSources) {
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"../models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"plan.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"planner/problem/plan.cc\""), 1);
}

TEST(CheckIncludes, RejectsAnEmptyTree) {
  EXPECT_EQ(CheckIncludes("elsewhere/a.cc", "<vector>"), 1);
}

}  // namespace
}  // namespace loadline::tools
