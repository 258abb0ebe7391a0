// The field `certificate` of plan files.
#include "planner/problem/certificate_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/problem/plan.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

// Ids in the file differ from positions.
Problem OtherIds() {
  Problem problem = SmallProblem();
  for (Value& value : problem.values) value.file_id += 50;
  for (Node& node : problem.nodes) node.file_id += 70;
  return problem;
}

Plan Certified(const Problem& problem) {
  Plan plan = SmallPlan(problem);
  plan.certificate.emplace();
  CertificatePart part;
  part.cuts = {NodeId{0}, NodeId{1}};
  part.until = NodeId{2};
  CertificateTreeNode branch;
  branch.branch = true;
  branch.column = {ColumnKind::kEncoded, {2, 0, 1}};
  CertificateTreeNode leaf;
  for (size_t k = 0; k < RowKinds().size(); ++k) {
    CertificateRow row;
    row.kind = static_cast<RowKind>(k);
    row.multiplier = static_cast<int64_t>(k) + 1;
    for (size_t i = 0; i < RowKinds()[k].arguments.size(); ++i) {
      row.arguments[i] = static_cast<int32_t>(i % 2 + 1);
    }
    leaf.rows.push_back(row);
    ++row.multiplier;
    leaf.rows.push_back(row);
  }
  part.tree = {branch, leaf, {}};
  plan.certificate->parts = {part, part};
  plan.certificate->parts[1].until = NodeId{-1};
  return plan;
}

TEST(CertificateJson, ReadsBackWhatItWrites) {
  const Problem problem = OtherIds();
  const std::string text = PlanToJson(Certified(problem), problem);
  EXPECT_THAT(text, HasSubstr("\"cuts\":[70,71],\"until\":72"));
  EXPECT_THAT(text, HasSubstr("\"branch\":\"encoded\",\"arguments\":[52,0,1]"));
  EXPECT_THAT(text, HasSubstr("{\"need\":[51,72,1,2,1,51,72,1,2,2],"));
  const auto again = PlanFromJson(text, problem);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PlanToJson(*again, problem), text);
}

TEST(CertificateJson, IsOptional) {
  const Problem problem = SmallProblem();
  const Plan plan = SmallPlan(problem);
  EXPECT_EQ(PlanToJson(plan, problem).find("certificate"), std::string::npos);
  EXPECT_FALSE(PlanFromJson(PlanToJson(plan, problem), problem)
                   ->certificate.has_value());
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
  // Without parts it proves one run of every node.
  Plan certified = plan;
  certified.certificate.emplace();
  EXPECT_EQ(Verify(problem, certified), absl::OkStatus());
  certified.bounds.step_ns = 6001;
  EXPECT_THAT(std::string(Verify(problem, certified).message()),
              HasSubstr("bounds.step_ns is 6001, but the certificate proves "
                        "6000"));
  certified = plan;
  certified.certificate.emplace();
  certified.bounds.peak_bytes = certified.predicted.peak_bytes;
  EXPECT_THAT(std::string(Verify(problem, certified).message()),
              HasSubstr("bounds.peak_bytes is"));
  certified.certificate.reset();
  EXPECT_EQ(Verify(problem, certified), absl::OkStatus());
}

TEST(CertificateJson, NamesWhatIsWrong) {
  const Problem problem = OtherIds();
  const std::string good = PlanToJson(Certified(problem), problem);
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"\"cuts\":[70,71]", "\"cuts\":[70,99]",
       "field \"cuts\" refers to id 99, which is nothing"},
      {"\"until\":72", "\"until\":2", "field \"until\" refers to id 2"},
      {"\"branch\":\"encoded\"", "\"branch\":\"code\"",
       "field \"branch\" names no kind of column"},
      {"\"arguments\":[52,0,1]", "\"arguments\":[52,0]",
       "field \"arguments\" must have 3 numbers"},
      {"\"arguments\":[52,0,1]", "\"arguments\":[2,0,1]",
       "field \"arguments\" refers to 2, which is nothing"},
      {"\"need\":[51,72,1,2,1,", "\"need\":[51,72,1,2,",
       "field \"need\" must have 5 numbers a row"},
      {"\"need\":[51,72,1,2,1,", "\"need\":[51,72,1,2,-1,",
       "field \"need\" must hold non-negative integers"},
      {"\"need\":[51,72,1,2,1,", "\"need\":[51,72,1,2,1.5,",
       "field \"need\" must hold non-negative integers"},
      {"\"need\":[51,72", "\"need\":[51,2",
       "field \"need\" refers to 2, which is nothing"},
      {"\"need\":", "\"needs\":", "field \"needs\" is unknown"},
      {"\"parts\":", "\"part\":", "field \"parts\" is missing"},
  };
  for (const auto& bad : cases) {
    const std::string text = absl::StrReplaceAll(good, {{bad.from, bad.to}});
    ASSERT_NE(text, good) << bad.from;
    const auto plan = PlanFromJson(text, problem);
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace loadline::planner
