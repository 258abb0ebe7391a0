// What goes from one phase to the next, and how it is cut.
#include "tools/pipeline/carry_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"
#include "tools/pipeline/persistent_values.h"

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A parameter f32[3,2] with states as a training step has them.
models::Graph Step(std::vector<int64_t> other = {3, 2}) {
  passes::Builder b;
  b.Parameter("w", {3, 2});
  b.State("w.momentum", {3, 2});
  b.State("w.mask0", {3, 1});
  b.State("w.mask1", {1, 2});
  b.State("w.other", std::move(other));
  b.Parameter("w.bias", {3});
  return b.graph;
}

const KeptAxes kKept = {{"w", {{.axis = 0, .indices = {0, 2}}}}};

TEST(SliceState, CutsStatesAsTheirParameter) {
  const models::Graph step = Step();
  auto sliced = SliceState(InitialState(step), step, kKept);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  StateValues values(*sliced);
  EXPECT_THAT(*values.Read("w"),
              ElementsAre(0.01f * 0, 0.01f * 1, 0.01f * 4, 0.01f * 5));
  EXPECT_THAT(*values.Read("w.momentum"), testing::SizeIs(4));
  EXPECT_THAT(*values.Read("w.mask0"), ElementsAre(0, 0.01f * 2));
  EXPECT_THAT(*values.Read("w.mask1"), ElementsAre(0, 0.01f));
  // A parameter whose name begins with another's is not its state.
  EXPECT_THAT(*values.Read("w.bias"), testing::SizeIs(3));
}

TEST(SliceState, RefusesStatesOfAnotherForm) {
  const models::Graph step = Step({6});
  const auto sliced = SliceState(InitialState(step), step, kKept);
  EXPECT_EQ(sliced.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(sliced.status().message()), HasSubstr("'w.other'"));
}

TEST(SetContents, TakesWhatFitsAndRefusesOtherSizes) {
  models::Graph step = Step();
  RunState state = InitialState(step);
  EXPECT_EQ(BytesOf(state), 4 * (6 + 6 + 3 + 2 + 6 + 3));
  StateValues(state).Write("w.bias", std::vector<float>{7, 8, 9}).IgnoreError();
  state["gone.mask0"].resize(4);
  ASSERT_TRUE(SetContents(state, &step).ok());
  EXPECT_THAT(step.value(*step.Find("w.bias")).initial->as<float>(),
              ElementsAre(7, 8, 9));
  state["w"].resize(4);
  EXPECT_EQ(SetContents(state, &step).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace loadline::tools
