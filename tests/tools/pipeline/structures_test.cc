// What the flags say about a step's structure, and which structures are tried.
#include "tools/pipeline/structures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

using passes::SplittableChain;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Splits = std::vector<std::string>;

PlanFlags Flags(const std::string& parts, Splits splits) {
  PlanFlags flags;
  flags.micro_batches = parts;
  flags.splits = std::move(splits);
  return flags;
}

SplittableChain Chain(const std::string& kind, int64_t rows) {
  SplittableChain chain;
  chain.name = kind + ".0";
  chain.kind = kind;
  chain.rows = rows;
  return chain;
}

TEST(SplitsOf, AreOpenWhereSomethingIsChosenAndNothingSaid) {
  EXPECT_TRUE(SplitsOf(Flags("1", {}))->has_value());
  EXPECT_FALSE(SplitsOf(Flags("1", {"auto"}))->has_value());
  EXPECT_FALSE(SplitsOf(Flags("auto", {}))->has_value());
  const auto given = SplitsOf(Flags("auto", {"head=2"}));
  ASSERT_TRUE(given.ok() && given->has_value());
  EXPECT_EQ((**given)[0].segments, 2);
  EXPECT_FALSE(SplitsOf(Flags("1", {"auto", "head=2"})).ok());
  PlanFlags off = Flags("auto", {"auto"});
  off.no_split = true;
  EXPECT_TRUE(SplitsOf(off)->has_value());
  EXPECT_FALSE(IsAuto(off));
}

TEST(SplitsOf, NeedThePassThatSplits) {
  PlanFlags flags = Flags("1", {"head=2"});
  flags.disabled_passes = {"split_operators"};
  EXPECT_THAT(SplitsOf(flags).status().message(),
              HasSubstr("--split: needs the pass split_operators"));
  flags.no_split = true;
  EXPECT_TRUE(SplitsOf(flags).ok());
}

TEST(SplitsToTry, AreOfTheLargestKindAndOfAll) {
  EXPECT_THAT(SplitsToTry({}, 1), IsEmpty());
  EXPECT_THAT(SplitsToTry({Chain("head", 64)}, 16),
              ElementsAre(Splits{"head=2"}, Splits{"head=4"}))
      << "4 rows to a part";
  EXPECT_THAT(SplitsToTry({Chain("head", 64), Chain("mlp", 4)}, 1),
              ElementsAre(Splits{"head=2"}, Splits{"head=4"}, Splits{"head=8"},
                          Splits{"head=16"}, Splits{"head=2", "mlp=2"},
                          Splits{"head=4", "mlp=4"}));
}

}  // namespace
}  // namespace loadline::tools
