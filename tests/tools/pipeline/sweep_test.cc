// Budgets, and the search for the largest size of a dimension.
#include "tools/pipeline/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/models/onnx_test_util.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/measure_plan.h"

namespace loadline::tools {
namespace {

using testing::ElementsAre;

TEST(BudgetsBetween, HoldBothEndsAndRise) {
  EXPECT_THAT(BudgetsBetween(100, 800, 8),
              ElementsAre(100, 200, 300, 400, 500, 600, 700, 800));
  EXPECT_THAT(BudgetsBetween(10, 12, 8), ElementsAre(10, 11, 12));
  EXPECT_THAT(BudgetsBetween(10, 10, 8), ElementsAre(10));
}

TEST(FindLargest, FindsEveryThresholdAndAsksNoBatchTwice) {
  for (int64_t first : {1, 3, 32}) {
    for (int64_t largest = 0; largest <= 100; ++largest) {
      std::set<int64_t> tried;
      const auto found =
          FindLargest(first, 80, [&](int64_t batch) -> absl::StatusOr<bool> {
            EXPECT_TRUE(tried.insert(batch).second) << batch;
            EXPECT_LE(batch, 80);
            return batch <= largest;
          });
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->size, std::min<int64_t>(largest, 80));
      EXPECT_EQ(found->smallest_not, largest >= 80 ? 0 : largest + 1);
    }
  }
}

TEST(FindLargest, StopsWithinOnePartIn256) {
  for (int64_t largest : {600, 1000, 32737, 999'999}) {
    int tried = 0;
    const auto found =
        FindLargest(32, 1 << 20, [&](int64_t batch) -> absl::StatusOr<bool> {
          ++tried;
          return batch <= largest;
        });
    ASSERT_TRUE(found.ok());
    EXPECT_LE(found->size, largest);
    EXPECT_GT(found->smallest_not, largest);
    EXPECT_LE(found->smallest_not - found->size, found->size / 256);
    EXPECT_LE(tried, 26);  // doublings and eight or so halvings
  }
}

TEST(FindLargest, HandsErrorsOn) {
  const auto found =
      FindLargest(8, 80, [](int64_t batch) -> absl::StatusOr<bool> {
        if (batch > 8) return absl::InvalidArgumentError("no batch");
        return true;
      });
  EXPECT_EQ(found.status().message(), "no batch");
}

TEST(ParseAxis, TakesANameAndSizes) {
  const auto axis = ParseAxis("--over", "sequence=64,128");
  ASSERT_TRUE(axis.ok()) << axis.status();
  EXPECT_EQ(axis->name, "sequence");
  EXPECT_THAT(axis->sizes, ElementsAre(64, 128));
  for (const char* bad : {"", "sequence", "=64", "sequence=", "sequence=64,",
                          "sequence=0", "sequence=-1", "sequence=a"}) {
    EXPECT_THAT(std::string(ParseAxis("--over", bad).status().message()),
                testing::StartsWith(absl::StrCat("--over '", bad, "'")));
  }
}

TEST(WithSize, SetsTheBatchOrAnAxisByItsName) {
  StepFlags flags;
  flags.model.dims = {"width=3"};
  EXPECT_EQ(WithSize(flags, kBatchAxis, 8).model.batch, 8);
  EXPECT_THAT(WithSize(flags, "sequence", 8).model.dims,
              ElementsAre("width=3", "sequence=8"));
}

// A recurrent layer's input, whose first axis is the time.
TEST(Sweep, TakesABatchThatIsNotTheFirstAxisByItsName) {
  const std::string path = FreshFolder() + "/time_first.onnx";
  models::WriteFile(path, models::Bytes(models::ModelFromText(R"(
      agraph (float[4, batch, 2] x) => (float[4, batch, 2] y)
      <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) })")));
  const auto sweep = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"sweep", path, "--machine", FixedMachinePath(),
                               "--no-recompute", "--no-offload", "--json"});
    return RunInProcess(more);
  };
  const CommandOutput over = sweep({"--over", "batch=4,8", "--budgets", "2"});
  ASSERT_EQ(over.exit_code, 0) << over.err;
  const auto points = nlohmann::json::parse(over.out)["fronts"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_GT(points[1]["keep_everything_peak_bytes"],
            points[0]["keep_everything_peak_bytes"]);
  const CommandOutput largest =
      sweep({"--largest", "batch", "--budget", "10KiB"});
  ASSERT_EQ(largest.exit_code, 0) << largest.err;
  EXPECT_GT(nlohmann::json::parse(largest.out)["largest"], 8);
  EXPECT_EQ(sweep({"--batches", "4,8"}).exit_code, 2);
}

}  // namespace
}  // namespace loadline::tools
