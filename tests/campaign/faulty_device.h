// A CPU device that pauses its lanes at random and fails once, where it is
// told.
#ifndef LOADLINE_TESTS_CAMPAIGN_FAULTY_DEVICE_H_
#define LOADLINE_TESTS_CAMPAIGN_FAULTY_DEVICE_H_

#include <array>
#include <cstdint>

#include "executor/cpu/device.h"

namespace loadline {

// The call that fails.
enum class Fault { kArena, kWrite, kRead, kLaunch, kCopy, kStep, kNone };
inline constexpr std::array<const char*, 7> kFaultNames = {
    "refused arena", "failed write", "failed read", "failed launch",
    "failed copy",   "failed step",  "only delays"};
// In every error of this device that is injected.
inline constexpr char kInjected[] = "injected fault";

class FaultyDevice : public executor::CpuDevice {
 public:
  // The call of that kind with number `at`, from 0, fails. `seed` and
  // `most_delay_ns` are those of DelayArgs.
  FaultyDevice(Fault fault, int64_t at, uint64_t seed, int64_t most_delay_ns)
      : fault_(fault), at_(at), seed_(seed), most_delay_ns_(most_delay_ns) {}

  absl::Status CreateArena(const executor::ArenaSpec& spec) override;
  absl::Status Write(executor::Space space, int64_t offset, const void* from,
                     int64_t bytes) override;
  absl::Status Read(executor::Space space, int64_t offset, void* to,
                    int64_t bytes) override;
  absl::Status BeginStep() override;
  absl::Status Launch(const executor::LaunchArgs& args) override;
  absl::Status Copy(const executor::CopyArgs& args) override;
  absl::Status Synchronize() override;

 private:
  // The injected error if this is the call that fails.
  absl::Status Count(Fault kind);
  absl::Status Pause(executor::Lane lane);

  const Fault fault_;
  const int64_t at_;
  const uint64_t seed_;
  const int64_t most_delay_ns_;
  int64_t calls_ = 0;  // of the kind that fails
  uint64_t turn_ = 0;
  uint64_t pauses_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_TESTS_CAMPAIGN_FAULTY_DEVICE_H_
