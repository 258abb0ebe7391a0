// `loadline sweep`: monotone Pareto fronts, and the largest batch that fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

void ExpectMonotone(const nlohmann::json& points) {
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_LE(points[i]["arena_bytes"], points[i]["budget_bytes"]);
    EXPECT_GE(points[i]["predicted_step_ns"], points[i]["bound_step_ns"]);
    if (i == 0) continue;
    EXPECT_GT(points[i]["budget_bytes"], points[i - 1]["budget_bytes"]);
    EXPECT_LE(points[i]["predicted_step_ns"],
              points[i - 1]["predicted_step_ns"]);
  }
}

TEST(Sweep, GivesAMonotoneFrontFromTheSmallestToAllKept) {
  const CommandResult result =
      RunLoadline({"sweep", Zoo("mlp.onnx"), "--budgets", "4", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json sweep = result.json();
  const nlohmann::json& points = sweep["points"];
  ASSERT_EQ(points.size(), 4);
  ExpectMonotone(points);
  const nlohmann::json& front = sweep["fronts"][0];
  EXPECT_EQ(points[0]["budget_bytes"], front["smallest_budget_bytes"]);
  EXPECT_EQ(points[3]["budget_bytes"], front["keep_everything_arena_bytes"]);
  EXPECT_EQ(points[3]["predicted_step_ns"], front["keep_everything_step_ns"]);
  EXPECT_FALSE(points[0].contains("step_ns"));
}

TEST(Sweep, RunsEachPointInsideItsBudget) {
  const CommandResult result =
      RunLoadline({"sweep", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--budgets", "3", "--run", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json points = result.json()["points"];
  ASSERT_EQ(points.size(), 3);
  for (const nlohmann::json& point : points) {
    EXPECT_GT(point["step_ns"], 0);
    EXPECT_EQ(point["measured_arena_bytes"], point["arena_bytes"]);
  }
  ExpectMonotone(points);
  EXPECT_EQ(points[2]["predicted_step_ns"],
            result.json()["fronts"][0]["keep_everything_step_ns"]);
}

TEST(Sweep, TakesSeveralBatches) {
  const CommandResult result =
      RunLoadline({"sweep", Zoo("mlp.onnx"), "--batches", "8,16", "--budgets",
                   "2", "--no-offload", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json points = result.json()["points"];
  ASSERT_EQ(points.size(), 4);
  EXPECT_EQ(points[0]["batch"], 8);
  EXPECT_EQ(points[3]["batch"], 16);
  EXPECT_LT(points[1]["budget_bytes"], points[3]["budget_bytes"]);
}

TEST(Sweep, TableIsNoWiderThanATerminal) {
  const CommandResult result =
      RunLoadline({"sweep", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--budgets", "2", "--run", "2", "--no-offload"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("measured"));
  EXPECT_THAT(result.out, HasSubstr("Smallest budget met: "));
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  for (size_t i = 0; i + 2 < lines.size(); ++i) {  // without the command's line
    EXPECT_LE(lines[i].size(), 80) << lines[i];
  }
}

// Without recomputation and copies, so that each size is decided quickly.
CommandResult RunPlain(std::vector<std::string> args,
                       const std::string& budget) {
  args.insert(args.end(),
              {"--no-recompute", "--no-offload", "--budget", budget});
  return RunLoadline(args);
}

TEST(Sweep, FindsTheLargestBatchThatFits) {
  const CommandResult result = RunPlain(
      {"sweep", Zoo("mlp.onnx"), "--largest-batch", "--json"}, "600KiB");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json found = result.json();
  const int64_t largest = found["largest_batch"];
  EXPECT_GT(largest, 1);
  EXPECT_EQ(found["smallest_batch_not_met"], largest + 1);
  EXPECT_LE(found["points"][0]["arena_bytes"], 600 << 10);
  const auto plan = [](int64_t batch) {
    return RunPlain({"plan", Zoo("mlp.onnx"), "--batch", absl::StrCat(batch)},
                    "600KiB")
        .exit_code;
  };
  EXPECT_EQ(plan(largest), 0);
  EXPECT_EQ(plan(largest + 1), 3);
}

TEST(Sweep, CountsASizeThatItHasNoTimeForAsNotMet) {
  const CommandResult result =
      RunLoadline({"sweep", Zoo("mlp.onnx"), "--largest-batch", "--budget",
                   "600KiB", "--time-limit", "1ms", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(result.json()["largest_batch"], 1);
  EXPECT_GT(result.json()["smallest_batch_not_met"], 1);
}

std::string Tagger() {  // x: batch, sequence, 8
  return LOADLINE_SOURCE_DIR "/tests/models/data/tagger_torchscript.onnx";
}

TEST(Sweep, TakesSizesOfAnyOpenAxis) {
  const CommandResult result =
      RunLoadline({"sweep", Tagger(), "--over", "sequence=4,8", "--budgets",
                   "2", "--no-offload", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json sweep = result.json();
  ASSERT_EQ(sweep["points"].size(), 4);
  EXPECT_EQ(sweep["points"][3]["axis"], "sequence");
  EXPECT_EQ(sweep["points"][3]["size"], 8);
  EXPECT_EQ(sweep["fronts"][1]["size"], 8);
  EXPECT_GT(sweep["fronts"][1]["keep_everything_peak_bytes"],
            sweep["fronts"][0]["keep_everything_peak_bytes"]);
}

TEST(Sweep, FindsTheLongestSequenceThatFits) {
  const CommandResult result = RunPlain(
      {"sweep", Tagger(), "--largest", "sequence", "--json"}, "100KiB");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json found = result.json();
  const int64_t largest = found["largest"];
  EXPECT_EQ(found["smallest_not_met"], largest + 1);
  const auto plan = [](int64_t size) {
    return RunPlain(
               {"plan", Tagger(), "--dim", absl::StrCat("sequence=", size)},
               "100KiB")
        .exit_code;
  };
  EXPECT_EQ(plan(largest), 0);
  EXPECT_EQ(plan(largest + 1), 3);
}

TEST(Sweep, RefusesWhatItCannotDoWithAReason) {
  const auto expect = [](std::vector<std::string> args, int exit_code,
                         const std::string& what) {
    args.insert(args.begin(), {"sweep", Zoo("mlp.onnx")});
    const CommandResult result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_EQ(result.out, "");
  };
  expect({"--largest-batch"}, 2, "needs --budget in bytes");
  expect({"--largest-batch", "--budget", "50%"}, 2, "needs --budget in bytes");
  expect({"--largest-batch", "--budget", "1KiB", "--batch", "1"}, 3,
         "the smallest budget met is");
  expect({"--largest-batch", "--budget", "1GiB", "--batches", "2,4"}, 2,
         "give one of them");
  expect({"--run", "2"}, 2, "--data");
  expect({"--budgets", "1"}, 2, "--budgets");
  expect({"--batches", "0"}, 2, "--batches");
  expect({"--batches", "2", "--over", "batch=2"}, 2, "give one of them");
  expect({"--over", "sequence"}, 2, "expected NAME=SIZE");
  expect({"--over", "sequence=4"}, 2, "'sequence', which no input has");
  expect({"--largest", "sequence"}, 2, "--largest: needs --budget in bytes");
  expect({"--largest", "sequence", "--budget", "1GiB"}, 2,
         "axes with a name: batch");
}

}  // namespace
}  // namespace loadline
