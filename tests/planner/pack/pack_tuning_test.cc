// Stages of Pack: with each switched off layouts stay valid, and each finds
// some layout that the greedy rules do not.
#include "planner/pack/pack_tuning.h"

#include <vector>

#include "gtest/gtest.h"
#include "planner/pack/pack.h"
#include "tests/planner/pack/pack_layouts.h"

namespace loadline::planner {
namespace {

PackTuning NoStages() {
  PackTuning tuning;
  tuning.stack_stage = tuning.join_stage = tuning.first_fit_stage = false;
  tuning.tiling_stage = tuning.squeaky_stage = tuning.exact_stage =
      tuning.improve_stage = false;
  return tuning;
}

int64_t Height(const std::vector<PackItem>& items, const PackTuning& tuning) {
  PackReport report;
  (void)Pack(items,
             {.capacity_bytes = PackLowerBound(items),
              .work_limit = 300'000,
              .tuning = tuning},
             &report);
  PackLayout layout;
  const PackBlocks blocks = MakeBlocks(items);
  layout.offsets.resize(blocks.blocks.size());
  for (size_t i = 0; i < items.size(); ++i) {
    layout.offsets[blocks.block_of_item[i]] = report.offsets[i];
  }
  layout.height_bytes = report.height_bytes;
  ExpectValid(items, blocks, layout);
  return report.height_bytes;
}

// Plain items, or some of them away in the middle.
std::vector<PackItem> Items(uint64_t seed) {
  std::vector<PackItem> items = PlainItems(seed, 30);
  if (seed % 2 == 0) return items;
  for (int64_t group = 0; group < 3; ++group) {
    const int64_t size = 10 + group;
    const auto first = static_cast<int64_t>(items.size());
    items.push_back({.id = first,
                     .lower = 0,
                     .upper = 3 + group,
                     .size = size,
                     .group = group});
    items.push_back({.id = first + 1,
                     .lower = 30 - group,
                     .upper = 40,
                     .size = size,
                     .group = group});
  }
  return items;
}

// On how many inputs the stages find something lower than the rules alone.
int Lower(const std::vector<bool PackTuning::*>& stages) {
  int lower = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const std::vector<PackItem> items = Items(seed);
    PackTuning tuning = NoStages();
    const int64_t none = Height(items, tuning);
    for (bool PackTuning::*stage : stages) tuning.*stage = true;
    const int64_t some = Height(items, tuning);
    EXPECT_LE(some, none) << seed;
    lower += some < none;
  }
  return lower;
}

TEST(PackTuning, EveryStageLowersSomeLayout) {
  EXPECT_GT(Lower({&PackTuning::stack_stage}), 0);
  EXPECT_GT(Lower({&PackTuning::join_stage}), 0);
  EXPECT_GT(Lower({&PackTuning::first_fit_stage}), 0);
  EXPECT_GT(Lower({&PackTuning::squeaky_stage}), 0);
  EXPECT_GT(Lower({&PackTuning::exact_stage}), 0);
  EXPECT_GT(Lower({&PackTuning::first_fit_stage, &PackTuning::improve_stage}),
            Lower({&PackTuning::first_fit_stage}));
}

}  // namespace
}  // namespace loadline::planner
