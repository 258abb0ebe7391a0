// What a tiny problem's device, host and lanes can look like at one moment, and
// what the problem says of it. For oracle.cc.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_DEVICE_STATE_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_DEVICE_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/problem/problem.h"

namespace loadline::planner {

inline uint32_t Bit(int i) { return uint32_t{1} << i; }

// One lane's step under way.
struct Running {
  int32_t id = -1;       // what it is; -1: idle
  double fixed_ns = 0;   // left of compute, or of a copy's latency
  double moving_ns = 0;  // left of a copy's bytes, were it alone
};

struct DeviceState {
  uint32_t done = 0;      // nodes that have run or run now
  uint32_t device = 0;    // values there, whole or being made or copied there
  uint32_t arriving = 0;  // of those, the ones not whole yet
  uint32_t in_use = 0;    // of the others, what compute reads now
  uint32_t encoded = 0;   // codecs (numbered over all values) there
  uint32_t host = 0;      // values whole on the host
  uint32_t homes = 0;     // persistent values that live on the host
  // Persistent values that are on the device since the beginning.
  uint32_t initial = 0;
  uint32_t extra_bytes = 0;  // workspace of what runs
  Running lanes[3];

  using Bits = std::array<uint64_t, 14>;
  Bits Key() const;

  uint32_t Whole() const { return device & ~arriving; }
  // What the copy out reads now.
  uint32_t Leaving() const { return lanes[1].id >= 0 ? Bit(lanes[1].id) : 0; }
  uint32_t Droppable() const { return Whole() & ~in_use & ~Leaving(); }
};

// What a compute lane id stands for.
struct DeviceJob {
  double ns = 0;
  uint32_t reads = 0;
  uint32_t makes = 0;
  uint32_t taken = 0;  // reads whose bytes outputs take over
  // First versions whose last versions it makes. Both have one place, so one
  // that is initial is gone when the job starts.
  uint32_t ends = 0;
  uint32_t reads_encoded = 0;
  uint32_t makes_encoded = 0;
  int64_t workspace_bytes = 0;
  int node = -1;  // -1: a codec
};

class DeviceRules {
 public:
  // `problem` must outlive this; see FindLeastStep for what it may hold.
  explicit DeviceRules(const Problem& problem);

  // Every way to run a node, to encode and to decode.
  const std::vector<DeviceJob>& jobs() const { return jobs_; }
  size_t codecs() const { return codec_bytes_.size(); }

  // One for every choice of homes, whatever its bytes.
  std::vector<DeviceState> Begins() const;
  bool Finished(const DeviceState& state) const;
  // What the step still takes at least: compute of what has not run.
  double LeastLeftNs(const DeviceState& state) const;

  int64_t LiveBytes(const DeviceState& state) const;
  // Encoded values that nothing accesses now.
  uint32_t Idle(const DeviceState& state) const;
  // What some way to the end may still read: what nodes that have not run
  // read, what must be there in the end, and what it takes to make such values
  // again.
  uint32_t Wanted(const DeviceState& state) const;

  // Of a last version of two or more: the first; of any other value: -1.
  int FirstOfLast(int v) const;

  // The lane's step has ended.
  void End(int lane, DeviceState& state) const;

 private:
  void AddNode(int n);
  void AddTakes(const DeviceJob& job, size_t pair, uint32_t used);
  void AddCodec(int v, const Codec& codec);
  bool MayLiveOnHost(int v) const;
  int LastVersion(int v) const;

  const Problem& problem_;
  const ProblemIndex index_;
  uint32_t all_ = 0;
  std::vector<DeviceJob> jobs_;
  std::vector<double> least_ns_;         // by node
  std::vector<uint32_t> reads_, makes_;  // by node
  std::vector<int64_t> codec_bytes_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_DEVICE_STATE_H_
