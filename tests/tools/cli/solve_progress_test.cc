// Long searches print rows; short ones print nothing.
#include "tools/cli/solve_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loadline::tools {
namespace {

planner::Progress At(double elapsed_s) {
  planner::Progress progress;
  progress.elapsed_s = elapsed_s;
  progress.peak_bytes = int64_t{3} << 20;
  progress.step_ns = 200'000'000;
  progress.bound_step_ns = 150'000'000;
  return progress;
}

TEST(ProgressRow, HasTimePeakStepBoundAndGap) {
  EXPECT_EQ(ProgressRow(At(2.13)),
            "   2.1 s   peak  3.00 MiB   step   200 ms   bound   150 ms   "
            "gap 25.0 %");
}

TEST(ProgressRows, ShowsOneRowASecondAndNoneBeforeTheFirst) {
  std::vector<std::string> rows;
  const auto show =
      ProgressRows([&rows](const std::string& row) { rows.push_back(row); });
  for (double elapsed_s :
       {0.1, 0.9, 1.0, 1.5, 1.99, 2.5, 2.6, 9.0, 9.9, 10.0}) {
    show(At(elapsed_s));
  }
  EXPECT_THAT(
      rows, testing::ElementsAre(ProgressRow(At(1.0)), ProgressRow(At(2.5)),
                                 ProgressRow(At(9.0)), ProgressRow(At(10.0))));
}

TEST(ProgressRows, SaysNothingOfAShortSearch) {
  int rows = 0;
  const auto show = ProgressRows([&rows](const std::string&) { ++rows; });
  for (double elapsed_s : {0.0, 0.2, 0.99}) show(At(elapsed_s));
  EXPECT_EQ(rows, 0);
}

}  // namespace
}  // namespace loadline::tools
