// tools/dev/check_includes must fail for every kind of violation: each case is
// a tree of one file with one include.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/tools/support/run_check.h"

namespace loadline::tools {
namespace {

// The script's exit status on a tree with only `file`, which has `include`.
int CheckIncludes(const std::string& file, const std::string& include) {
  return RunCheck("check_includes", {{file, "#include " + include + "\n"}});
}

TEST(CheckIncludes, AcceptsWhatARoomMayInclude) {
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "\"planner/problem/plan.h\""),
            0);
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
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "\"models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/search/a.h", "\"executor/device/device.h\""),
            1);
  EXPECT_EQ(CheckIncludes("models/a.cc", "\"planner/problem/problem.h\""), 1);
  EXPECT_EQ(CheckIncludes("models/a.cc", "\"passes/make_problem.h\""), 1);
  EXPECT_EQ(CheckIncludes("passes/a.cc", "\"executor/device/kernel.h\""), 1);
  EXPECT_EQ(
      CheckIncludes("executor/program/a.cc", "\"passes/check_plan_matches.h\""),
      1);
  EXPECT_EQ(CheckIncludes("plugins/a.cc", "\"models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("plugins/c/a.c", "\"tools/pipeline/files.h\""), 1);
  EXPECT_EQ(CheckIncludes("tools/verbs/a.cc", "\"tests/support.h\""), 1);
}

// The rooms, or parts of rooms, that each room may include.
const std::map<std::string, std::string>& Doors() {
  static const auto* doors = new std::map<std::string, std::string>([] {
    const std::string base = "planner/base ";
    const std::string plans = base + "planner/problem planner/verify ";
    const std::string schedule = base + "planner/problem planner/schedule ";
    const std::string search = schedule + "planner/bound planner/search ";
    const std::string planner = plans + "planner/solve planner/pack ";
    const std::string device = plans + "models executor/device ";
    const std::string executor =
        "executor/device executor/ops executor/program executor/files "
        "executor/train executor/measure executor/fake executor/cpu "
        "executor/cuda ";
    const std::string pipeline =
        planner + executor + "models passes passes/compress tools/cli ";
    return std::map<std::string, std::string>{
        {"planner/base", ""},
        {"planner/problem", base},
        {"planner/certificate", base + "planner/problem"},
        {"planner/verify", base + "planner/problem planner/certificate"},
        {"planner/pack", base},
        {"planner/schedule", base + "planner/problem"},
        {"planner/bound", schedule},
        {"planner/certify", schedule + "planner/bound planner/certificate"},
        {"planner/search", schedule + "planner/bound"},
        {"planner/layers", search},
        {"planner/layout", search + "planner/pack"},
        {"planner/solve",
         search + "planner/certificate planner/certify planner/verify "
                  "planner/pack planner/layers planner/layout"},
        {"models", base},
        {"passes", plans + "models passes/compress"},
        {"passes/compress", plans + "models passes"},
        {"executor/device", plans + "models"},
        {"executor/ops", device},
        {"executor/program", device},
        {"executor/files", base + "models"},
        {"executor/train", device + "executor/program executor/files"},
        {"executor/measure", device + "executor/program"},
        {"executor/fake", device},
        {"executor/cpu", device + "executor/ops executor/measure"},
        {"executor/cuda", device + "executor/ops executor/measure"},
        {"plugins", planner},
        {"tools/cli", planner},
        {"tools/pipeline", pipeline},
        {"tools/report", pipeline + "tools/pipeline"},
        {"tools/verbs", pipeline + "tools/pipeline tools/report"}};
  }());
  return *doors;
}

// The header of the room that others may include, if the room limits that.
std::string FaceOf(const std::string& room) {
  const std::map<std::string, std::string> faces = {
      {"planner/solve", "solve.h"},
      {"planner/verify", "verify.h"},
      {"planner/pack", "pack.h"}};
  const auto face = faces.find(room);
  return room + "/" + (face == faces.end() ? "a.h" : face->second);
}

// A tree in which every room includes every other room.
TEST(CheckIncludes, KnowsEveryDoor) {
  std::map<std::string, std::string> files;
  std::string expected;
  for (const auto& [room, doors] : Doors()) {
    const std::vector<std::string> open = absl::StrSplit(doors, ' ');
    int line = 0;
    for (const auto& [other, unused] : Doors()) {
      if (other == room) continue;
      ++line;
      absl::StrAppend(&files[room + "/a.cc"], "#include \"", FaceOf(other),
                      "\"\n");
      if (std::find(open.begin(), open.end(), other) != open.end()) continue;
      absl::StrAppend(&expected, room, "/a.cc:", line, "\n");
    }
  }
  std::string rejected;
  const std::string output = CheckOutput("check_includes", files);
  for (absl::string_view text : absl::StrSplit(output, '\n')) {
    const size_t end = text.find(": #include");
    if (end == absl::string_view::npos) continue;
    absl::StrAppend(&rejected, text.substr(0, end), "\n");
  }
  EXPECT_EQ(rejected, expected);
}

TEST(CheckIncludes, ShowsOthersOnlyTheFacesOfThePlanner) {
  for (const std::string header :
       {"planner/solve/budget_bisection.h", "planner/verify/verify_facts.h",
        "planner/pack/pack_parts.h", "planner/search/search_state.h"}) {
    EXPECT_EQ(CheckIncludes("plugins/c/a.cc", "\"" + header + "\""), 1);
    EXPECT_EQ(CheckIncludes("tools/verbs/a.cc", "\"" + header + "\""), 1);
  }
}

TEST(CheckIncludes, RejectsAFileInNoRoom) {
  EXPECT_EQ(CheckIncludes("planner/a.cc", "\"planner/base/check.h\""), 1);
}

TEST(CheckIncludes, RejectsALibraryOutsideItsRoom) {
  EXPECT_EQ(CheckIncludes("models/graph.cc", "<onnx/checker.h>"), 1);
  EXPECT_EQ(CheckIncludes("passes/a.cc", "\"google/protobuf/message.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "<dnnl.hpp>"), 1);
}

TEST(CheckIncludes, RejectsRelativePathsAndSources) {
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "\"../models/graph.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "\"plan.h\""), 1);
  EXPECT_EQ(CheckIncludes("planner/search/a.cc", "\"planner/problem/plan.cc\""),
            1);
}

TEST(CheckIncludes, RejectsAnEmptyTree) {
  EXPECT_EQ(CheckIncludes("elsewhere/a.cc", "<vector>"), 1);
}

}  // namespace
}  // namespace loadline::tools
