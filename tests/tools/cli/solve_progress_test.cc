// Long searches print rows; short ones print nothing.
#include "tools/cli/solve_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

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

TEST(SearchLog, ShowsOneRowASecondAndNoneBeforeTheFirst) {
  std::vector<std::string> rows;
  SearchLog log([&rows](const std::string& row) { rows.push_back(row); },
                absl::InfiniteDuration());
  for (double elapsed_s :
       {0.1, 0.9, 1.0, 1.5, 1.99, 2.5, 2.6, 9.0, 9.9, 10.0}) {
    log.Improved(At(elapsed_s));
  }
  EXPECT_THAT(
      rows, testing::ElementsAre(ProgressRow(At(1.0)), ProgressRow(At(2.5)),
                                 ProgressRow(At(9.0)), ProgressRow(At(10.0))));
}

TEST(SearchLog, SaysNothingOfAShortSearch) {
  int rows = 0;
  {
    SearchLog log([&rows](const std::string&) { ++rows; },
                  absl::InfiniteDuration());
    for (double elapsed_s : {0.0, 0.2, 0.99}) log.Improved(At(elapsed_s));
  }
  EXPECT_EQ(rows, 0);
}

TEST(SearchLog, SpeaksUpInASearchThatFindsNothingNew) {
  absl::Mutex mutex;
  std::vector<std::string> rows;
  const auto has = [&](size_t count) {
    const auto reached = [&] { return rows.size() >= count; };
    mutex.LockWhen(absl::Condition(&reached));
    mutex.Unlock();
  };
  SearchLog log(
      [&](const std::string& row) {
        absl::MutexLock lock(&mutex);
        rows.push_back(row);
      },
      absl::Milliseconds(1));
  has(1);
  log.Improved(At(0.5));  // too early for a row of its own
  size_t before = 0;
  {
    absl::MutexLock lock(&mutex);
    before = rows.size();
  }
  has(before + 2);
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(rows.front(), HasSubstr("still searching; no plan yet"));
  EXPECT_THAT(rows.back(),
              HasSubstr("still searching; the best plan takes 200 ms a step"));
}

}  // namespace
}  // namespace loadline::tools
