#include "tools/pipeline/warn_of_other_programs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(OtherProgramsWarning, IsDueWhereOthersTookMuch) {
  EXPECT_EQ(OtherProgramsWarning(0, "operators were", "cpu", ""), "");
  EXPECT_EQ(OtherProgramsWarning(0.09, "operators were", "cpu", ""), "");
  EXPECT_THAT(OtherProgramsWarning(0.456, "operators were", "cpu", ""),
              HasSubstr("46 % of the processors while operators were"));
}

TEST(OtherProgramsWarning, NamesTheCommandThatMeasuresAnew) {
  EXPECT_THAT(OtherProgramsWarning(1, "it was", "cpu", ""),
              EndsWith(": loadline doctor"));
  EXPECT_THAT(OtherProgramsWarning(1, "it was", "cuda", "my.json"),
              EndsWith(": loadline doctor --device cuda -o my.json"));
}

}  // namespace
}  // namespace loadline::tools
