// The table of a recipe's phases.
#include "tools/report/phases_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tools/pipeline/phase_record.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

PhaseRecord Phase(int64_t number, std::vector<GroupWidth> widths) {
  PhaseRecord record = {.number = number,
                        .first_step = 10 * (number - 1),
                        .end_step = 10 * number};
  for (const GroupWidth& group : widths) record.channels += group.width;
  record.widths = std::move(widths);
  return record;
}

// Of 4 heads one is left, and the search for groups sees its 16 channels.
TEST(PhasesReport, CountsTheLastHeadOfAGroupAsOneHead) {
  std::vector<PhaseRecord> phases = {Phase(1, {{"q", 4, true}, {"fc", 256}}),
                                     Phase(2, {{"q", 16}, {"fc", 128}})};
  CountAsIn(phases[0], &phases[1]);
  EXPECT_EQ(phases[1].widths[0].width, 1);
  EXPECT_EQ(phases[1].channels, 1 + 128);
  const std::string table = PhasesTable({}, phases, {});
  EXPECT_THAT(
      table,
      HasSubstr(
          "q                                    4       1  ######......"));
  EXPECT_THAT(table, HasSubstr("256     128  ############............\n"));
}

TEST(PhasesReport, CountsHeadsAndChannelsThatStayAsTheyAre) {
  PhaseRecord last = Phase(2, {{"q", 2, true}, {"fc", 128}});
  CountAsIn(Phase(1, {{"q", 4, true}, {"fc", 256}}), &last);
  EXPECT_EQ(last.widths[0].width, 2);
  EXPECT_EQ(last.channels, 2 + 128);
}

// An interrupted run has not come to its last phase.
TEST(PhasesReport, OnlyTheLastPhaseOfAllEndsTheRun) {
  passes::Recipe recipe;
  recipe.entries.resize(1);
  recipe.entries[0].name = "int8";
  passes::QuantizeSpec spec;
  spec.start_step = 10;
  recipe.entries[0].spec = spec;
  const std::vector<PhaseRecord> phases = {Phase(1, {{"fc", 4}})};
  EXPECT_THAT(PhasesTable(recipe, phases, {}),
              HasSubstr("Entry 'int8' quantizes after the last step."));
  EXPECT_THAT(PhasesTable(recipe, phases, {}, /*has_all=*/false),
              HasSubstr("Entry 'int8' quantizes from step 11 on."));
}

// Whatever the widths are, a bar has a length.
TEST(PhasesReport, DrawsAFullBarOfAGroupThatGrows) {
  const std::string table =
      PhasesTable({}, {Phase(1, {{"fc", 4}}), Phase(2, {{"fc", 16}})}, {});
  EXPECT_THAT(table, HasSubstr("4      16  ########################\n"));
}

}  // namespace
}  // namespace loadline::tools
