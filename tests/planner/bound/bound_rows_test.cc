// How a bound's program charges compute time, with and without copy lanes.
#include "planner/bound/bound_rows.h"

#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

TEST(BoundRows, WithoutLanesTimeIsTheObjectiveInUnits) {
  BoundRows rows(4, 2, false);
  const int work = rows.Work(1, 20);
  const int encode = rows.WorkSomewhere(6);
  EXPECT_EQ(rows.column(work).cost, 5);
  EXPECT_EQ(rows.column(encode).cost, 1.5);
  EXPECT_TRUE(rows.work(1).empty());
  EXPECT_TRUE(rows.work_somewhere().empty());
}

TEST(BoundRows, WithLanesTimeIsRecordedByEpoch) {
  BoundRows rows(4, 2, true);
  const int work = rows.Work(1, 20);
  const int encode = rows.WorkSomewhere(6);
  EXPECT_EQ(rows.column(work).cost, 0);
  EXPECT_EQ(rows.column(encode).cost, 0);
  ASSERT_EQ(rows.work(1).size(), 1u);
  EXPECT_EQ(rows.work(1)[0].column, work);
  EXPECT_EQ(rows.work(1)[0].coefficient, 5);
  EXPECT_TRUE(rows.work(0).empty());
  EXPECT_TRUE(rows.work(2).empty());
  ASSERT_EQ(rows.work_somewhere().size(), 1u);
  EXPECT_EQ(rows.work_somewhere()[0].coefficient, 1.5);
}

TEST(BoundRows, ColumnsAreBinaryAndRowsHaveOneSide) {
  BoundRows rows(1, 1, false);
  const int a = rows.Binary();
  const int b = rows.Binary();
  rows.AtLeast(1, {{a, 1}, {b, 1}});
  rows.AtMost(1, {{a, 2}});
  EXPECT_TRUE(rows.column(a).integer);
  EXPECT_EQ(rows.column(a).lower, 0);
  EXPECT_EQ(rows.column(a).upper, 1);
  EXPECT_EQ(rows.program().rows[0].lower, 1);
  EXPECT_EQ(rows.program().rows[0].upper, kNoLimit);
  EXPECT_EQ(rows.program().rows[1].lower, -kNoLimit);
  EXPECT_EQ(rows.program().rows[1].upper, 1);
}

TEST(Append, ScalesWhatItAdds) {
  Terms to = {{0, 1}};
  Append(to, {{1, 2}, {2, -3}}, -2);
  ASSERT_EQ(to.size(), 3u);
  EXPECT_EQ(to[1].coefficient, -4);
  EXPECT_EQ(to[2].coefficient, 6);
}

}  // namespace
}  // namespace loadline::planner
