// Every kind of ending has its own exit code.
#include "tools/cli/exit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

TEST(ExitCodeFor, FollowsTheTable) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("")), 2);
  EXPECT_EQ(ExitCodeFor(CannotFitError("")), 3);
  EXPECT_EQ(ExitCodeFor(absl::UnimplementedError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 5);
  EXPECT_EQ(ExitCodeFor(AboveBudgetError("")), 6);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError("")), 130);
}

TEST(ExitCodeMeanings, AreTheTableOfTheDocs) {
  const auto docs = ReadFile("docs/command.md");
  ASSERT_TRUE(docs.ok()) << docs.status();
  std::string table = "| code | meaning |\n|---|---|\n";
  for (const ExitCodeMeaning& one : ExitCodeMeanings()) {
    absl::StrAppend(&table, "| ", one.code, " | ", one.meaning, " |\n");
  }
  EXPECT_THAT(*docs, testing::HasSubstr(table));
}

TEST(ExitCodeFor, TellsAFullDiskFromAPlanThatDoesNotFit) {
  EXPECT_EQ(ExitCodeFor(absl::ResourceExhaustedError("disk full")), 2);
}

TEST(ExitCodeFor, TellsABadIndexFromARunAboveItsBudget) {
  EXPECT_EQ(ExitCodeFor(absl::OutOfRangeError("index 9")), 2);
}

}  // namespace
}  // namespace loadline::tools
