// Compares two results of one problem, from each kind of document.
#include "tools/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "planner/problem/plan.h"
#include "tests/planner/support/small_plan.h"
#include "tests/tools/support/fresh_folder.h"
#include "tools/cli/exit_code.h"
#include "tools/pipeline/files.h"
#include "tools/report/document.h"
#include "tools/report/plan_summary.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;

class Compare : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder();
    problem_ = planner::SmallProblem();
    copied_ = planner::SmallPlan(problem_);
    kept_ = copied_;
    kept_.decisions[0].action = planner::Action::kKeep;
    kept_.budget_bytes = 700;
    copied_.problem_sha256 = kept_.problem_sha256 = ProblemSha256(problem_);
    copied_.problem_name = kept_.problem_name = problem_.name;
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteFile(path, text).ok());
    return path;
  }
  std::string WritePlan(const std::string& name, const planner::Plan& plan) {
    return Write(name, planner::PlanToJson(plan, problem_));
  }
  Compared Read(const std::string& path) {
    auto compared = ReadCompared(path, &problem_);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return compared.ok() ? *std::move(compared) : Compared{};
  }
  std::string ErrorOf(const std::string& path,
                      const planner::Problem* problem) {
    const auto compared = ReadCompared(path, problem);
    EXPECT_EQ(ExitCodeFor(compared.status()), kBadInput);
    EXPECT_THAT(std::string(compared.status().message()), HasSubstr(path));
    return std::string(compared.status().message());
  }

  std::string folder_;
  planner::Problem problem_;
  planner::Plan copied_;
  planner::Plan kept_;
};

TEST_F(Compare, PutsTwoPlanFilesSideBySide) {
  const Compared a = Read(WritePlan("a.json", kept_));
  const Compared b = Read(WritePlan("b.json", copied_));
  const std::string table = CompareTable(a, b);
  EXPECT_THAT(table, HasSubstr("700 B        600 B   -100 B  (-14.3 %)"));
  EXPECT_THAT(table, HasSubstr("510 B        510 B   same"));
  EXPECT_THAT(table, HasSubstr("in the decision about 1 value of 100 B"));
  EXPECT_THAT(table, HasSubstr("keep      -> offload    y"));
  EXPECT_THAT(CompareTable(a, a), HasSubstr("decide the same"));
  const auto json = CompareJson(a, b);
  EXPECT_EQ(json["figures"][0]["field"], "budget_bytes");
  EXPECT_EQ(json["figures"][0]["a"], 700);
  EXPECT_EQ(json["decisions"]["differing"], 1);
  EXPECT_EQ(json["decisions"]["values"][0]["b"], "offload");
}

TEST_F(Compare, ReadsAReportAsItReadsItsPlan) {
  ReportInput input;
  input.problem = &problem_;
  input.keep_everything = &kept_;
  input.plan = &copied_;
  const Measured measured = {.steps = 2, .step_ns = 7000, .arena_bytes = 510};
  input.measured = &measured;
  const auto document = ReportDocument(input);
  ASSERT_TRUE(document.ok()) << document.status();
  const Compared report = Read(Write("report.json", document->dump()));
  Compared plan = Read(WritePlan("plan.json", copied_));
  EXPECT_EQ(report.decisions.at("y").action, "offload");
  EXPECT_EQ(report.decisions.size(), plan.decisions.size());
  plan.figures["step_ns"] = 7000;
  plan.figures["measured_arena_bytes"] = 510;
  EXPECT_EQ(report.figures, plan.figures);
}

TEST_F(Compare, PutsARunBesideItsPlan) {
  nlohmann::ordered_json run = PlanSummaryJson(problem_, kept_, copied_);
  run["format"] = "loadline.run/1";
  run["step_ns"] = 7000;
  run["measured_arena_bytes"] = 510;
  const Compared b = Read(Write("run.json", run.dump()));
  EXPECT_EQ(b.kind, "run");
  const std::string table =
      CompareTable(Read(WritePlan("plan.json", copied_)), b);
  EXPECT_THAT(table, HasSubstr("measured step               -      7.00 us"));
  EXPECT_THAT(table, HasSubstr("Decisions are in plan files and reports"));
  EXPECT_FALSE(CompareJson(b, b).contains("decisions"));
}

TEST_F(Compare, SaysWhenTheProblemsDiffer) {
  Compared a = Read(WritePlan("a.json", kept_));
  Compared b = a;
  b.problem = "other";
  EXPECT_THAT(CompareTable(a, b), HasSubstr("small and other"));
}

TEST_F(Compare, RefusesWhatItCannotReadAndNamesTheFile) {
  EXPECT_THAT(ErrorOf(folder_ + "/none.json", nullptr), HasSubstr("no such"));
  EXPECT_THAT(ErrorOf(Write("text", "hello"), nullptr),
              HasSubstr("no JSON document"));
  EXPECT_THAT(ErrorOf(Write("list", "[]"), nullptr),
              HasSubstr("no JSON document"));
  EXPECT_THAT(ErrorOf(Write("other", "{\"format\": \"x\"}"), nullptr),
              HasSubstr("format 'x'"));
  EXPECT_THAT(ErrorOf(WritePlan("plan", copied_), nullptr),
              HasSubstr("--problem"));
  EXPECT_THAT(
      ErrorOf(Write("run", "{\"format\": \"loadline.run/1\"}"), nullptr),
      HasSubstr("budget_bytes"));
  EXPECT_THAT(
      ErrorOf(Write("report", "{\"format\": \"loadline.report/1\"}"), nullptr),
      HasSubstr("summary"));
  planner::Plan wrong = copied_;
  wrong.buffers[1].offset = 50;
  EXPECT_THAT(ErrorOf(WritePlan("wrong", wrong), &problem_),
              HasSubstr("not valid"));
}

}  // namespace
}  // namespace loadline::tools
