// Exactly the freed bytes are filled.
#include "executor/program/poison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(Poison, FreesEveryIntermediateOnceAndNoHome) {
  const Toy toy = MakeToy({.depth = 4});
  const planner::Plan plan = KeepPlan(toy);
  const auto placement = PlaceValues(toy.graph, toy.problem, plan);
  ASSERT_TRUE(placement.ok());
  const auto freed = FreedAfterStep(toy.problem, plan, *placement);
  // Here every buffer has its own place, except updated values.
  for (const planner::Buffer& buffer : plan.buffers) {
    if (buffer.value == planner::kNoValue) continue;
    const planner::Value& value = toy.problem.value(buffer.value);
    int64_t times = 0;
    for (const auto& regions : freed) {
      times += std::count_if(
          regions.begin(), regions.end(), [&](const FreedBytes& f) {
            return f.space == buffer.space && f.region.offset == buffer.offset;
          });
    }
    EXPECT_EQ(times, value.persistent || value.name == "loss" ? 0 : 1)
        << value.name;
  }
}

TEST(Poison, AReadAfterTheLastUseGivesNaN) {
  const Toy toy = MakeToy({.depth = 4});
  const planner::Plan plan = KeepPlan(toy);
  int64_t h1 = -1;
  for (const planner::Buffer& buffer : plan.buffers) {
    if (buffer.value != planner::kNoValue &&
        toy.problem.value(buffer.value).name == "h1") {
      h1 = buffer.offset;
    }
  }
  ASSERT_GE(h1, 0);
  const DataSet data = ToyData(toy, toy.options.batch);
  const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                data.columns[1].data.data()};
  for (bool poison : {false, true}) {
    CpuDevice device(ToyDevice());
    auto program =
        Load(toy.graph, toy.problem, plan, device, {.poison = poison});
    ASSERT_TRUE(program.ok());
    ASSERT_TRUE((*program)->Step({}, inputs).ok());
    float stale;
    ASSERT_TRUE(device.Read(Space::kDevice, h1, &stale, sizeof(stale)).ok());
    EXPECT_EQ(stale != stale, poison);
  }
}

TEST(Poison, FillsWhatTheHostHeldOnceItIsBack) {
  const Toy toy = MakeToy({.depth = 5});
  const planner::Plan plan = OffloadPlan(toy);
  const DataSet data = ToyData(toy, toy.options.batch);
  const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                data.columns[1].data.data()};
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device, {.poison = true});
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE((*program)->Step({}, inputs).ok());
  int64_t on_host = 0;
  for (const planner::Buffer& buffer : plan.buffers) {
    if (buffer.space != Space::kHost) continue;
    ++on_host;
    std::vector<uint8_t> bytes(buffer.bytes);
    ASSERT_TRUE(
        device.Read(Space::kHost, buffer.offset, bytes.data(), buffer.bytes)
            .ok());
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), kPoisonByte),
              buffer.bytes);
  }
  EXPECT_EQ(on_host, 4);
}

}  // namespace
}  // namespace loadline::executor
