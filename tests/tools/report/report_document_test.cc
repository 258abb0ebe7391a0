// The report's document, and the page that contains it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "planner/base/sha256.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/support/small_plan.h"
#include "tests/planner/verify/broken_plan.h"
#include "tools/pipeline/device.h"
#include "tools/report/assumptions.h"
#include "tools/report/attribution.h"
#include "tools/report/document.h"
#include "tools/report/page.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nlohmann::ordered_json DocumentOf(const planner::Problem& problem,
                                  const std::vector<ParetoPoint>& front) {
  const planner::Plan plan = planner::SmallPlan(problem);
  ReportInput input;
  input.problem = &problem;
  input.keep_everything = &plan;
  input.plan = &plan;
  input.pareto = front;
  input.command = "loadline report x";
  input.assumptions = Assumptions(problem, nullptr);
  auto document = ReportDocument(input);
  EXPECT_TRUE(document.ok()) << document.status();
  return *std::move(document);
}

TEST(ReportDocument, HasTablesOfEqualColumns) {
  const planner::Problem problem = planner::SmallProblem();
  const auto document = DocumentOf(problem, {});
  EXPECT_EQ(document["format"], "loadline.report/1");
  for (const char* table : {"nodes", "values", "buffers", "steps", "samples"}) {
    const size_t rows = document[table].begin()->size();
    for (const auto& column : document[table]) EXPECT_EQ(column.size(), rows);
  }
  EXPECT_EQ(document["nodes"]["name"].size(), 3);
  EXPECT_EQ(document["values"]["name"].size(), 5);
  // Seven buffers on the device; the one on the host is not in the arena.
  EXPECT_EQ(document["buffers"]["value"].size(), 7);
  EXPECT_EQ(document["steps"]["lane"],
            nlohmann::ordered_json::array({0, 1, 2, 0, 0}));
  EXPECT_EQ(document["samples"]["live_bytes"].size(), 3);
  EXPECT_FALSE(document.contains("measured"));
  EXPECT_TRUE(document["front"].empty());
}

TEST(ReportDocument, NamesTheCodecsOfSteps) {
  planner::Problem problem = planner::SmallProblem();
  problem.outputs.clear();
  planner::Plan plan = planner::SmallPlan(problem);
  plan.buffers[3] = {planner::ValueId(2), 50, planner::Space::kDevice, 400};
  plan.buffers[5].offset = 200;
  plan.steps[1] =
      planner::CodecStep(planner::StepKind::kEncode, /*from=*/2, /*to=*/3);
  plan.steps[2] =
      planner::CodecStep(planner::StepKind::kDecode, /*from=*/3, /*to=*/4);
  plan.steps[3].wait.clear();
  plan.host_bytes = 0;
  planner::Predict(problem, plan);
  ReportInput input;
  input.problem = &problem;
  input.keep_everything = input.plan = &plan;
  const auto document = ReportDocument(input);
  ASSERT_TRUE(document.ok()) << document.status();
  std::vector<std::string> codecs;
  for (size_t text : (*document)["steps"]["codec"]) {
    codecs.push_back((*document)["texts"][text]);
  }
  EXPECT_THAT(codecs, ElementsAre("", "encode half", "decode half", "", ""));
  EXPECT_EQ((*document)["summary"]["compressed_values"], 1);
  EXPECT_EQ((*document)["summary"]["compression_saved_bytes"], 50);
}

TEST(ReportDocument, NamesThePointsOfAFront) {
  const planner::Problem problem = planner::SmallProblem();
  ParetoPoint point;
  point.plan = planner::SmallPlan(problem);
  ParetoPoint ran = point;
  ran.axis = "batch";
  ran.size = 8;
  ParetoPoint longer = point;
  longer.axis = "sequence";
  longer.size = 64;
  ran.measured.push_back({.steps = 2, .step_ns = 7000, .arena_bytes = 600});
  const auto front = DocumentOf(problem, {point, ran, longer})["front"];
  ASSERT_EQ(front.size(), 3);
  EXPECT_EQ(front[0]["predicted_step_ns"], point.plan.predicted.step_ns);
  EXPECT_FALSE(front[0].contains("step_ns"));
  EXPECT_FALSE(front[0].contains("axis"));
  EXPECT_EQ(front[1]["step_ns"], 7000);
  EXPECT_EQ(front[1]["batch"], 8);
  EXPECT_EQ(front[2]["axis"], "sequence");
  EXPECT_EQ(front[2]["size"], 64);
  EXPECT_FALSE(front[2].contains("batch"));
}

TEST(Attribute, TellsPersistentValuesAndTheirUpdatesFromOthers) {
  const Attribution facts = Attribute(planner::SmallProblem(), nullptr, {});
  EXPECT_THAT(facts.kinds,
              ElementsAre(MemoryKind::kParameters, MemoryKind::kActivations,
                          MemoryKind::kActivations, MemoryKind::kActivations,
                          MemoryKind::kParameters));
}

TEST(Attribute, FindsModulesByPathByParameterAndByNeighbour) {
  planner::Problem problem = planner::SmallProblem();
  problem.values[0].name = "block.0.fc.weight";
  problem.nodes[1].name = "grad";
  EXPECT_THAT(Attribute(problem, nullptr, {}).modules,
              ElementsAre("block.0.fc", "block.0.fc", "block.0.fc"));
  problem.nodes[0].name = "/layer1/conv/Conv";
  const Attribution facts = Attribute(problem, nullptr, {});
  EXPECT_THAT(facts.modules,
              ElementsAre("layer1/conv", "layer1/conv", "block.0.fc"));
  // The weight belongs to the module where it is updated.
  EXPECT_EQ(facts.value_modules[0], "block.0.fc");
  EXPECT_EQ(facts.value_modules[2], "layer1/conv");
}

// The document embedded in the page.
std::string DataOf(const std::string& page) {
  const absl::string_view mark =
      "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(std::string(mark)) + mark.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(ReportPage, CarriesTheDocumentWhateverItsNamesAre) {
  planner::Problem problem = planner::SmallProblem();
  problem.values[2].name = "a</script><script>alert(1)</script>";
  problem.values[3].name = "not \xff UTF-8";
  const auto document = DocumentOf(problem, {});
  const std::string data = DataOf(ReportPage(document));
  EXPECT_THAT(data, testing::Not(HasSubstr("<")));
  const auto read = nlohmann::json::parse(data, nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  const size_t path = read["values"]["path"][2];
  EXPECT_EQ(read["texts"][path].get<std::string>() +
                read["values"]["name"][2].get<std::string>(),
            problem.values[2].name);
  EXPECT_EQ(read["buffers"], nlohmann::json(document["buffers"]));
}

// A script in a name of the document, or in an attribute that a library makes
// of one, has no hash in the policy.
TEST(ReportPage, AllowsItsOwnScriptsOnly) {
  const std::string page = ReportPage(DocumentOf(planner::SmallProblem(), {}));
  const size_t begin = page.find("script-src ");
  ASSERT_NE(begin, std::string::npos);
  const std::string policy = page.substr(begin, page.find(';', begin) - begin);
  EXPECT_THAT(policy, testing::Not(HasSubstr("unsafe")));
  const std::string open = "<script>";
  int scripts = 0;
  for (size_t at = page.find(open); at != std::string::npos;
       at = page.find(open, at + 1)) {
    const size_t from = at + open.size();
    const std::string hash =
        absl::Base64Escape(absl::HexStringToBytes(planner::Sha256Hex(
            page.substr(from, page.find("</script>", from) - from))));
    EXPECT_THAT(policy, HasSubstr("'sha256-" + hash + "'"));
    ++scripts;
  }
  EXPECT_EQ(scripts, 3);
}

TEST(ReportPage, IsWholeAndNamesItsLicences) {
  const std::string page = ReportPage(DocumentOf(planner::SmallProblem(), {}));
  EXPECT_TRUE(absl::StartsWith(page, "<!doctype html>"));
  EXPECT_TRUE(absl::EndsWith(page, "</html>\n"));
  EXPECT_THAT(page, HasSubstr("Copyright (c) 2015-2026 Oli Folkerd"));
  EXPECT_THAT(page, HasSubstr("Licensed to the Apache Software Foundation"));
  EXPECT_THAT(page, HasSubstr("TERMS AND CONDITIONS FOR USE, REPRODUCTION"));
  // The page loads nothing.
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* fetch : {"<script src", "<link rel=\"stylesheet", "@import",
                            "sourceMappingURL"}) {
    EXPECT_THAT(page, testing::Not(HasSubstr(fetch)));
  }
}

TEST(Assumptions, SayWhatIsOutsideThePlan) {
  planner::Problem problem = planner::SmallProblem();
  problem.machine->reserved_bytes = int64_t{300} << 20;
  EXPECT_THAT(Assumptions(problem, nullptr),
              testing::Contains(HasSubstr("not in the budget: 300 MiB")));
  StepFlags gpu;
  gpu.plan.device = kCuda;
  EXPECT_THAT(
      Assumptions(problem, &gpu),
      testing::Contains(HasSubstr("taken off a budget in bytes: 300 MiB")));
}

}  // namespace
}  // namespace loadline::tools
