// Lanes, events and bounds of the CPU device, under stress.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "executor/cpu/device.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

// Adds 1 to each word of its input.
class Increment : public Kernel {
 public:
  explicit Increment(int64_t words) : words_(words) {}
  absl::Status Run(const KernelArgs& args) override {
    for (int64_t i = 0; i < words_; ++i) {
      int64_t word;
      std::memcpy(&word, args.inputs[0] + 8 * i, 8);
      ++word;
      std::memcpy(args.outputs[0] + 8 * i, &word, 8);
    }
    return absl::OkStatus();
  }

 private:
  int64_t words_;
};

// Circulates a block: compute adds 1, d2h copies it out, h2d copies it back
// elsewhere. Any missing wait changes the number at the end.
void RunRoundTrips(CpuDeviceOptions options, int steps) {
  constexpr int64_t kBytes = 4096;
  constexpr int kRounds = 20;
  CpuDevice device(std::move(options));
  ASSERT_TRUE(device
                  .CreateArena({.arena_bytes = 2 * kBytes,
                                .host_bytes = kBytes,
                                .event_count = 3 * kRounds,
                                .max_operands = 1})
                  .ok());
  Increment kernel(kBytes / 8);
  const StepScalars scalars;
  std::vector<int64_t> block(kBytes / 8, 0);
  ASSERT_TRUE(device.Write(Space::kDevice, 0, block.data(), kBytes).ok());
  const Region a = {0, kBytes};
  const Region b = {kBytes, kBytes};
  for (int step = 0; step < steps; ++step) {
    ASSERT_TRUE(device.BeginStep().ok());
    for (int r = 0; r < kRounds; ++r) {
      const EventId made{3 * r}, out{3 * r + 1}, back{3 * r + 2};
      ASSERT_TRUE(device
                      .Launch({.kernel = &kernel,
                               .inputs = {&a, 1},
                               .outputs = {&b, 1},
                               .scalars = &scalars})
                      .ok());
      ASSERT_TRUE(device.Record(Lane::kCompute, made).ok());
      ASSERT_TRUE(device.Wait(Lane::kD2h, made).ok());
      ASSERT_TRUE(device
                      .Copy({.lane = Lane::kD2h,
                             .device_offset = kBytes,
                             .host_offset = 0,
                             .bytes = kBytes})
                      .ok());
      ASSERT_TRUE(device.Fill(Lane::kD2h, Space::kDevice, b, 0xFF).ok());
      ASSERT_TRUE(device.Record(Lane::kD2h, out).ok());
      ASSERT_TRUE(device.Wait(Lane::kH2d, out).ok());
      ASSERT_TRUE(device
                      .Copy({.lane = Lane::kH2d,
                             .device_offset = 0,
                             .host_offset = 0,
                             .bytes = kBytes})
                      .ok());
      ASSERT_TRUE(device.Record(Lane::kH2d, back).ok());
      ASSERT_TRUE(device.Wait(Lane::kCompute, back).ok());
    }
    ASSERT_TRUE(device.Synchronize().ok());
  }
  ASSERT_TRUE(device.Read(Space::kDevice, 0, block.data(), kBytes).ok());
  EXPECT_EQ(block, std::vector<int64_t>(kBytes / 8, steps * kRounds));
}

TEST(CpuDevice, LanesKeepTheirOrder) { RunRoundTrips({}, 100); }

TEST(CpuDevice, LanesKeepTheirOrderThroughAFile) {
  RunRoundTrips({.make_store = FileStoreAt(TemporaryPath("lanes"))}, 20);
}

TEST(CpuDevice, LanesKeepTheirOrderUnderRandomDelays) {
  std::atomic<uint32_t> count{0};
  RunRoundTrips({.before_lane_command =
                     [&](Lane) {
                       const uint32_t n = count.fetch_add(1);
                       if (n * 2654435761u % 7 == 0) {
                         std::this_thread::sleep_for(
                             std::chrono::microseconds(n * 40503u % 200));
                       }
                     }},
                10);
}

TEST(CpuDevice, ARingOfOneCommandIsEnough) {
  RunRoundTrips({.lane_capacity = 1}, 20);
}

// A thread that waits on the compute lane executes the lanes' commands.
TEST(CpuDevice, TheThreadThatWaitsHelpsTheLanes) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> by_caller{0}, by_lanes{0};
  RunRoundTrips(
      {.before_lane_command =
           [&](Lane) {
             ++(std::this_thread::get_id() == caller ? by_caller : by_lanes);
           }},
      50);
  EXPECT_GT(by_caller, 0);
  EXPECT_GT(by_caller + by_lanes, 50);
}

CpuDevice& MadeDevice(CpuDevice& device) {
  EXPECT_TRUE(device
                  .CreateArena({.arena_bytes = 1024,
                                .host_bytes = 512,
                                .event_count = 2,
                                .max_operands = 1})
                  .ok());
  EXPECT_TRUE(device.BeginStep().ok());
  return device;
}

TEST(CpuDevice, RefusesEveryAccessOutsideTheArena) {
  CpuDevice made;
  CpuDevice& device = MadeDevice(made);
  Increment kernel(1);
  const StepScalars scalars;
  const auto launch = [&](Region in, Region out) {
    return device
        .Launch({.kernel = &kernel,
                 .inputs = {&in, 1},
                 .outputs = {&out, 1},
                 .scalars = &scalars})
        .code();
  };
  constexpr auto kOut = absl::StatusCode::kOutOfRange;
  EXPECT_EQ(launch({0, 8}, {1016, 8}), absl::StatusCode::kOk);
  EXPECT_EQ(launch({0, 8}, {1017, 8}), kOut);
  EXPECT_EQ(launch({1024, 8}, {0, 8}), kOut);
  EXPECT_EQ(launch({INT64_MAX - 3, 8}, {0, 8}), kOut);
  EXPECT_EQ(launch({0, 8}, {0, INT64_MAX}), kOut);
  EXPECT_EQ(device.Fill(Lane::kCompute, Space::kDevice, {1000, 25}, 0).code(),
            kOut);
  EXPECT_EQ(device.Check({.region = {1000, 25}}).code(), kOut);
  EXPECT_EQ(device.Fill(Lane::kD2h, Space::kDevice, {-2, 1}, 0).code(), kOut);
  EXPECT_EQ(device.Fill(Lane::kD2h, Space::kHost, {512, 1}, 0).code(), kOut);
  EXPECT_EQ(device.Copy({.device_offset = 1000, .bytes = 100}).code(), kOut);
  EXPECT_EQ(device.Copy({.host_offset = 500, .bytes = 100}).code(), kOut);
  EXPECT_EQ(device.Record(Lane::kD2h, EventId{2}).code(), kOut);
  EXPECT_EQ(device.Wait(Lane::kH2d, EventId{-1}).code(), kOut);
  uint8_t byte = 0;
  EXPECT_EQ(device.Write(Space::kDevice, 1024, &byte, 1).code(), kOut);
  EXPECT_EQ(device.Read(Space::kHost, 512, &byte, 1).code(), kOut);
  EXPECT_TRUE(device.Synchronize().ok());
}

TEST(CpuDevice, RefusesALaunchWithMoreOperandsThanAnnounced) {
  CpuDevice made;
  CpuDevice& device = MadeDevice(made);
  Increment kernel(1);
  const std::vector<Region> two = {{0, 8}, {8, 8}};
  const Region out = {0, 8};
  EXPECT_EQ(
      device.Launch({.kernel = &kernel, .inputs = two, .outputs = {&out, 1}})
          .code(),
      absl::StatusCode::kOutOfRange);
}

TEST(CpuDevice, GivesUpAStepWithoutHanging) {
  CpuDevice made;
  CpuDevice& device = MadeDevice(made);
  // Event 0 is never recorded.
  ASSERT_TRUE(device.Wait(Lane::kD2h, EventId{0}).ok());
  ASSERT_TRUE(device.Copy({.lane = Lane::kD2h, .bytes = 8}).ok());
  ASSERT_TRUE(device.Record(Lane::kD2h, EventId{1}).ok());
  ASSERT_TRUE(device.Wait(Lane::kH2d, EventId{1}).ok());
  device.Abort();
  ASSERT_TRUE(device.BeginStep().ok());
  EXPECT_TRUE(device.Synchronize().ok());
}

TEST(CpuDevice, HasOneArena) {
  CpuDevice device;
  EXPECT_FALSE(device.has_arena());
  ASSERT_TRUE(device.CreateArena({.arena_bytes = 10}).ok());
  EXPECT_EQ(device.CreateArena({.arena_bytes = 10}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CpuDevice, NotesWhenCommandsRan) {
  CpuDevice made;
  CpuDevice& device = MadeDevice(made);
  ASSERT_TRUE(device.EnableTrace(2).ok());
  Increment kernel(1);
  const StepScalars scalars;
  const Region r = {0, 8};
  ASSERT_TRUE(device.BeginStep().ok());
  ASSERT_TRUE(device
                  .Launch({.kernel = &kernel,
                           .inputs = {&r, 1},
                           .outputs = {&r, 1},
                           .scalars = &scalars,
                           .trace_slot = 0})
                  .ok());
  ASSERT_TRUE(device.Record(Lane::kCompute, EventId{0}).ok());
  ASSERT_TRUE(device.Wait(Lane::kD2h, EventId{0}).ok());
  ASSERT_TRUE(
      device.Copy({.lane = Lane::kD2h, .bytes = 512, .trace_slot = 1}).ok());
  ASSERT_TRUE(device.Synchronize().ok());
  ASSERT_EQ(device.trace().size(), 2u);
  EXPECT_LE(device.trace()[0].start_ns, device.trace()[0].end_ns);
  EXPECT_LE(device.trace()[0].end_ns, device.trace()[1].start_ns);
  EXPECT_LT(device.trace()[1].start_ns, device.trace()[1].end_ns);
}

}  // namespace
}  // namespace loadline::executor
