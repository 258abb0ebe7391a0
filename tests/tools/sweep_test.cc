// Budgets, the search for the largest batch, progress rows and the command that
// makes a result again.
#include "tools/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/reproduce.h"
#include "tools/solve_progress.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;

TEST(BudgetsBetween, HoldBothEndsAndRise) {
  EXPECT_THAT(BudgetsBetween(100, 800, 8),
              ElementsAre(100, 200, 300, 400, 500, 600, 700, 800));
  EXPECT_THAT(BudgetsBetween(10, 12, 8), ElementsAre(10, 11, 12));
  EXPECT_THAT(BudgetsBetween(10, 10, 8), ElementsAre(10));
}

TEST(FindLargestBatch, FindsEveryThresholdAndAsksNoBatchTwice) {
  for (int64_t first : {1, 3, 32}) {
    for (int64_t largest = 0; largest <= 100; ++largest) {
      std::set<int64_t> asked;
      const auto found = FindLargestBatch(
          first, 80, [&](int64_t batch) -> absl::StatusOr<bool> {
            EXPECT_TRUE(asked.insert(batch).second) << batch;
            EXPECT_LE(batch, 80);
            return batch <= largest;
          });
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->batch, std::min<int64_t>(largest, 80));
      EXPECT_EQ(found->smallest_not, largest >= 80 ? 0 : largest + 1);
    }
  }
}

TEST(FindLargestBatch, HandsErrorsOn) {
  const auto found =
      FindLargestBatch(8, 80, [](int64_t batch) -> absl::StatusOr<bool> {
        if (batch > 8) return absl::InvalidArgumentError("no batch");
        return true;
      });
  EXPECT_EQ(found.status().message(), "no batch");
}

TEST(ProgressRows, SayNothingInTheFirstSecondAndOneRowASecondAfter) {
  std::vector<std::string> rows;
  const auto show =
      ProgressRows([&rows](const std::string& row) { rows.push_back(row); });
  for (double elapsed_s : {0.2, 0.9, 1.5, 1.6, 2.4, 2.6}) {
    show({.elapsed_s = elapsed_s,
          .peak_bytes = 24 << 20,
          .step_ns = 200'000'000,
          .bound_step_ns = 180'000'000});
  }
  EXPECT_THAT(rows,
              ElementsAre("   1.5 s   peak  24.0 MiB   step   200 ms   bound   "
                          "180 ms   gap 10.0 %",
                          "   2.6 s   peak  24.0 MiB   step   200 ms   bound   "
                          "180 ms   gap 10.0 %"));
}

TEST(CommandToReproduce, QuotesAsAShellReads) {
  NoteCommand({"plan", "my model.onnx", "--budget", "50%", "it's"});
  EXPECT_EQ(CommandToReproduce(),
            "loadline plan 'my model.onnx' --budget 50% 'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

}  // namespace
}  // namespace loadline::tools
