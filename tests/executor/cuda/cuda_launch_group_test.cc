// Consecutive launches are merged if the difference cannot be observed.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "executor/cuda/device.h"
#include "executor/cuda/launch_group.h"
#include "tests/executor/support/fake_cuda_driver.h"

namespace loadline::executor {
namespace {

constexpr int64_t kBytes = 8;

// Adds a number to an i64; its group runs from the last member to the first.
class Adder final : public cuda::GroupKernel {
 public:
  Adder(FakeCudaDriver& driver, int64_t number)
      : driver_(driver), number_(number) {}

  bool Joins(const cuda::GroupKernel& other) const override {
    return static_cast<const Adder&>(other).number_ == number_;
  }
  int64_t most_members() const override { return 4; }
  absl::Status EnqueueGroup(absl::Span<const Member> members,
                            const cuda::LaunchContext& context) override {
    std::vector<std::pair<const std::byte*, std::byte*>> moves;
    for (const Member& member : members) {
      moves.emplace_back(member.args.inputs[0], member.args.outputs[0]);
    }
    return driver_.Enqueue(context.stream, [moves, number = number_] {
      for (auto it = moves.rbegin(); it != moves.rend(); ++it) {
        int64_t n = 0;
        std::memcpy(&n, it->first, kBytes);
        n += number;
        std::memcpy(it->second, &n, kBytes);
      }
    });
  }

 private:
  FakeCudaDriver& driver_;
  int64_t number_;
};

class LaunchGroups : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::Create(
        driver_, {.prepare = [](const models::Graph&, const models::Node&)
                      -> absl::StatusOr<std::unique_ptr<Kernel>> {
          return absl::UnimplementedError("none");
        }});
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    ASSERT_TRUE(device_
                    ->CreateArena({.arena_bytes = 16 * kBytes,
                                   .host_bytes = 16 * kBytes,
                                   .event_count = 2,
                                   .max_operands = 1})
                    .ok());
  }

  // Writes the word at `from`, plus the kernel's number, to `to`.
  void Add(cuda::GroupKernel& kernel, int64_t from, int64_t to) {
    const Region in = {from * kBytes, kBytes};
    const Region out = {to * kBytes, kBytes};
    ASSERT_TRUE(device_
                    ->Launch({.kernel = &kernel,
                              .inputs = {&in, 1},
                              .outputs = {&out, 1},
                              .scalars = &scalars_,
                              .trace_slot = 0,
                              .name = "add"})
                    .ok());
  }

  // Number of launches that reach the stream in a step.
  int64_t Launches(const std::function<void()>& record) {
    const int64_t before = driver_.calls("Kernel");
    EXPECT_TRUE(device_->BeginStep().ok());
    record();
    EXPECT_TRUE(device_->Synchronize().ok());
    return driver_.calls("Kernel") - before;
  }

  int64_t Word(int64_t at) {
    int64_t word = 0;
    EXPECT_TRUE(device_->Read(Space::kDevice, at * kBytes, &word, kBytes).ok());
    return word;
  }
  void Clear() {
    const int64_t zero = 0;
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_TRUE(
          device_->Write(Space::kDevice, i * kBytes, &zero, kBytes).ok());
    }
  }

  FakeCudaDriver driver_;
  std::unique_ptr<CudaDevice> device_;
  const StepScalars scalars_ = {};
  Adder one_{driver_, 1};
  Adder ten_{driver_, 10};
};

TEST_F(LaunchGroups, TakeAsManyAsTheirKernelsDo) {
  Clear();
  EXPECT_EQ(Launches([&] {
              for (int64_t i = 0; i < 6; ++i) Add(one_, i, i);
            }),
            2);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(Word(i), 1);
  EXPECT_EQ(driver_.ranged().front(), "add and 3 more: Kernel");
  // A replay launches the same graph.
  const CapturedStep step = device_->Capture();
  const auto replayed = device_->Replay(step);
  ASSERT_TRUE(replayed.ok() && *replayed);
  ASSERT_TRUE(device_->Synchronize().ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(Word(i), 2);
}

TEST_F(LaunchGroups, TakeNobodyWhoseBytesTheirsTouch) {
  Clear();
  // Reads, or overwrites, what the previous launch writes.
  EXPECT_EQ(Launches([&] {
              Add(one_, 0, 1);
              Add(one_, 1, 2);
              Add(one_, 3, 2);
            }),
            3);
  EXPECT_EQ(Word(1), 1);
  EXPECT_EQ(Word(2), 1);
  // Writes what the previous launch reads.
  Clear();
  EXPECT_EQ(Launches([&] {
              Add(one_, 0, 1);
              Add(one_, 2, 0);
            }),
            2);
  EXPECT_EQ(Word(1), 1);
  // Two launches may read the same word.
  EXPECT_EQ(Launches([&] {
              Add(one_, 0, 4);
              Add(one_, 0, 5);
            }),
            1);
}

TEST_F(LaunchGroups, EndWhereTheLaneDoesAnythingElse) {
  Clear();
  const auto between = [&](const std::function<absl::Status()>& what) {
    return Launches([&] {
      Add(one_, 0, 0);
      EXPECT_TRUE(what().ok());
      Add(one_, 1, 1);
    });
  };
  EXPECT_EQ(between([&] { return absl::OkStatus(); }), 1);
  EXPECT_EQ(between([&] {
              return device_->Copy({.lane = Lane::kD2h, .bytes = kBytes});
            }),
            1);
  EXPECT_EQ(
      between([&] { return device_->Record(Lane::kCompute, EventId{0}); }), 2);
  EXPECT_EQ(between([&] {
              if (!device_->Record(Lane::kD2h, EventId{1}).ok()) {
                return absl::InternalError("");
              }
              return device_->Wait(Lane::kCompute, EventId{1});
            }),
            2);
  EXPECT_EQ(between([&] {
              return device_->Fill(Lane::kCompute, Space::kDevice,
                                   {8 * kBytes, kBytes}, 0);
            }),
            2);
  EXPECT_EQ(between([&] {
              return device_->Delay({.lane = Lane::kCompute, .most_ns = 1});
            }),
            2);
  EXPECT_EQ(between([&] {
              return device_->Check({.region = {8 * kBytes, kBytes}});
            }),
            2);
  EXPECT_EQ(between([&] {
              Add(ten_, 2, 2);
              return absl::OkStatus();
            }),
            3);
}

TEST_F(LaunchGroups, AreOfOneWhereTimesAreTaken) {
  ASSERT_TRUE(device_->EnableTrace(1).ok());
  EXPECT_EQ(Launches([&] {
              Add(one_, 0, 0);
              Add(one_, 1, 1);
            }),
            2);
}

TEST_F(LaunchGroups, AreDroppedWithTheirStep) {
  Clear();
  ASSERT_TRUE(device_->BeginStep().ok());
  Add(one_, 0, 0);
  device_->Abort();
  EXPECT_EQ(Launches([&] { Add(one_, 1, 1); }), 1);
  EXPECT_EQ(Word(0), 0);
  EXPECT_EQ(Word(1), 1);
}

}  // namespace
}  // namespace loadline::executor
