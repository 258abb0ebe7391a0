// `loadline report`, as a user or a script runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> ReportMlp(std::vector<std::string> more) {
  std::vector<std::string> args = {"report", Zoo("mlp.onnx"), "--data",
                                   Zoo("digits-train.npz")};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Bytes by kind at the peak, computed from the columns.
std::map<std::string, int64_t> AtPeak(const nlohmann::json& document) {
  const auto& live = document["samples"]["live_bytes"];
  size_t peak = 0;
  for (size_t s = 0; s < live.size(); ++s) {
    if (live[s] > live[peak]) peak = s;
  }
  const int at = static_cast<int>(peak);
  const auto& buffers = document["buffers"];
  std::map<std::string, int64_t> bytes;
  for (size_t b = 0; b < buffers["value"].size(); ++b) {
    if (buffers["from"][b] > at || buffers["to"][b] <= at) continue;
    const int value = buffers["value"][b];
    const std::string kind =
        value < 0 ? "workspace"
                  : document["kinds"]
                            [document["values"]["kind"][value].get<size_t>()];
    bytes[kind] += buffers["bytes"][b].get<int64_t>();
  }
  return bytes;
}

TEST(Report, TellsKindsOfMemoryApart) {
  const CommandResult result = RunLoadline(ReportMlp({"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["format"], "loadline.report/1");
  const auto bytes = AtPeak(document);
  int64_t sum = 0;
  for (const auto& [kind, of] : bytes) sum += of;
  EXPECT_EQ(sum, document["summary"]["predicted_peak_bytes"]);
  const nlohmann::json model =
      RunLoadline({"inspect", Zoo("mlp.onnx"), "--json"}).json();
  const int64_t parameters = model["parameter_bytes"];
  // AdamW has two numbers per parameter; without a budget everything is kept.
  EXPECT_GE(bytes.at("parameters"), parameters);
  EXPECT_EQ(bytes.at("optimizer"), 2 * parameters);
  EXPECT_THAT(document["texts"], testing::Contains("fc1"));
  EXPECT_THAT(document["texts"], testing::Contains("Gemm"));
}

TEST(Report, RunsThePlanAndWritesAPage) {
  const std::string page = TestFolder("report") + "/page.html";
  const CommandResult result = RunLoadline(
      ReportMlp({"--budget", "70%", "--steps", "2", "--html", page}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Reproduce with: loadline report "));
  EXPECT_THAT(result.out, HasSubstr("Fits in "));
  std::ifstream file(page);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"measured\":{\"arena_bytes\":"));
  EXPECT_LT(std::filesystem::file_size(page), 6'000'000);
}

TEST(Report, TakesAPlanFileWithItsProblem) {
  const std::string folder = TestFolder("report_plan");
  const std::string plan = folder + "/plan.json";
  const std::string problem = folder + "/problem.json";
  ASSERT_EQ(RunLoadline({"plan", Zoo("mlp.onnx"), "--budget", "70%", "-o", plan,
                         "--problem", problem})
                .exit_code,
            0);
  const std::string trace = folder + "/trace.json";
  const CommandResult result = RunLoadline(
      {"report", plan, "--problem", problem, "--trace", trace, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json from_file = result.json();
  const nlohmann::json planned =
      RunLoadline({"report", problem, "--budget", "70%", "--json"}).json();
  EXPECT_EQ(from_file["buffers"], planned["buffers"]);
  EXPECT_EQ(from_file["summary"], planned["summary"]);
  // One event per step, plus those that name and order process and lanes.
  std::ifstream file(trace);
  const auto events = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(events.is_discarded());
  EXPECT_EQ(events["traceEvents"].size(),
            from_file["steps"]["lane"].size() + 5);
}

TEST(Report, RefusesWhatItCannotDoWithAReason) {
  const auto expect = [](const std::vector<std::string>& args, int exit_code,
                         const std::string& what) {
    const CommandResult result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_EQ(result.out, "");
  };
  expect({"report", "/no/plan.json", "--problem", "/no/p.json"}, 2,
         "/no/p.json");
  expect({"report", Zoo("mlp.onnx"), "--steps", "2"}, 2, "--data");
  expect({"report", "x.json", "--steps", "2"}, 2, "needs the model");
  expect({"report", Zoo("mlp.onnx"), "--problem", "p.json"}, 2, "--problem");
  expect(ReportMlp({"--html", "/no/folder/page.html"}), 2, "/no/folder");
  expect(ReportMlp({"--budget", "1KiB"}), 3, "the smallest budget met is");
}

}  // namespace
}  // namespace loadline
