// The report's document as CSV and as Markdown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/planner/support/small_plan.h"
#include "tools/report/document.h"
#include "tools/report/tables.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReportTables : public testing::Test {
 protected:
  ReportTables() : problem_(planner::SmallProblem()) {
    problem_.values[2].name = "layer/a,\"b\"|c";
    plan_ = planner::SmallPlan(problem_);
  }

  nlohmann::ordered_json Document(const Measured* measured = nullptr) {
    ReportInput input;
    input.problem = &problem_;
    input.keep_everything = &plan_;
    input.plan = &plan_;
    input.measured = measured;
    input.command = "loadline report x";
    input.assumptions = {"One."};
    auto document = ReportDocument(input);
    EXPECT_TRUE(document.ok()) << document.status();
    return *std::move(document);
  }

  planner::Problem problem_;
  planner::Plan plan_;
};

TEST_F(ReportTables, CsvHasARowForEachTensor) {
  const std::vector<std::string> rows =
      absl::StrSplit(TensorCsv(Document()), '\n', absl::SkipEmpty());
  ASSERT_EQ(rows.size(), 6);
  EXPECT_EQ(rows[0], "name,bytes,kind,action,reason,module,operator");
  EXPECT_EQ(rows[1], "w,100,parameters,,,,");
  // Quoted where necessary.
  EXPECT_EQ(rows[3],
            "\"layer/a,\"\"b\"\"|c\",100,activations,offload,"
            "idle until its gradient,,");
}

TEST_F(ReportTables, MarkdownHasVerdictFiguresAndTensors) {
  const std::string page = ReportMarkdown(Document());
  EXPECT_THAT(page, HasSubstr("### small in 600 B\n"));
  EXPECT_THAT(page, HasSubstr("\nFits in 600 B with 90 B to spare"));
  EXPECT_THAT(page, HasSubstr("| arena | 510 B | 510 B |\n"));
  EXPECT_THAT(page, HasSubstr("Not kept, the largest of 1:"));
  EXPECT_THAT(page, HasSubstr("| layer/a,\"b\"\\|c | 100 B | offload | idle"));
  EXPECT_THAT(page, HasSubstr("modules that hold the peak:"));
  EXPECT_THAT(page, HasSubstr("| workspace | 10 B | 0 ns |\n"));
  EXPECT_THAT(page, HasSubstr("- One.\n"));
  EXPECT_THAT(page, HasSubstr("```\nloadline report x\n```\n"));
  EXPECT_THAT(page, Not(HasSubstr("measured")));
}

TEST_F(ReportTables, MarkdownShowsNamesAsText) {
  problem_.name = "<img src=x onerror=alert(1)>";
  problem_.values[2].name = "[a](javascript:b)<script>`c`\n# d\x1b[2J";
  plan_ = planner::SmallPlan(problem_);
  nlohmann::ordered_json document = Document();
  document["command"] = "loadline report '```\n<b>'";
  document["assumptions"] = {"<i>"};
  const std::string page = ReportMarkdown(document);
  EXPECT_THAT(page, HasSubstr("### &lt;img src=x onerror=alert(1)&gt; in"));
  EXPECT_THAT(page, HasSubstr("| \\[a\\](javascript:b)&lt;script&gt;"
                              "\\`c\\` # d\\\\u001b\\[2J |"));
  EXPECT_THAT(page, HasSubstr("- &lt;i&gt;\n"));
  EXPECT_THAT(page, HasSubstr("````\nloadline report '```\n<b>'\n````\n"));
}

TEST_F(ReportTables, MarkdownHasWhatWasMeasured) {
  const Measured measured = {.steps = 2, .step_ns = 7000, .arena_bytes = 510};
  EXPECT_THAT(ReportMarkdown(Document(&measured)),
              HasSubstr("| measured | - | 510 B, 7.00 us |\n"));
}

TEST_F(ReportTables, MarkdownNamesWhatRunsAgainByModule) {
  problem_.nodes[0].name = "/encoder/forward";
  plan_ = planner::SmallPlan(problem_);
  auto document = Document();
  document["steps"]["again"][0] = 1;
  const std::string page = ReportMarkdown(document);
  EXPECT_THAT(page, HasSubstr("| encoder | "));
  EXPECT_THAT(page, HasSubstr(" | 1.00 us |\n"));
}

TEST_F(ReportTables, MarkdownSaysThatAllIsKept) {
  plan_.decisions[0].action = planner::Action::kKeep;
  EXPECT_THAT(ReportMarkdown(Document()), HasSubstr("Every tensor is kept.\n"));
}

}  // namespace
}  // namespace loadline::tools
