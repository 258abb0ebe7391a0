// Random numbers are counter-based: a step that the device replays without the
// host draws new delays from its step counter. Tested in
// tests/executor/device/stress_device_test.cc.
#include "executor/device/stress_commands.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "executor/device/philox.h"

namespace loadline::executor {

int64_t DelayNs(const DelayArgs& args) {
  const uint64_t turn = args.turn == nullptr ? 0 : *args.turn;
  PhiloxCounters<1> random = {{{static_cast<uint32_t>(turn)},
                               {static_cast<uint32_t>(turn >> 32)},
                               {0},
                               {0}}};
  PhiloxRounds(random, static_cast<uint32_t>(args.seed),
               static_cast<uint32_t>(args.seed >> 32));
  if (random.words[0][0] % 2 == 0) return 0;
  int bits = 0;
  while ((int64_t{2} << bits) < args.most_ns) ++bits;
  const int64_t most = int64_t{2} << random.words[1][0] % (bits + 1);
  return std::min(args.most_ns, most / 2 + random.words[2][0] % (most / 2));
}

void SleepNs(int64_t ns) {
  if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

absl::Status FindDamage(const CheckArgs& args, const std::byte* found) {
  int64_t first = -1;
  int64_t count = 0;
  for (int64_t i = 0; i < args.region.bytes; ++i) {
    if (found[i] == static_cast<std::byte>(args.byte)) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (count == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "%s wrote outside its buffers: %d of the %d bytes at offset %d of the "
      "arena, the first at %d (0x%02x)",
      std::string(args.owner), count, args.region.bytes, args.region.offset,
      args.region.offset + first, std::to_integer<int>(found[first])));
}

}  // namespace loadline::executor
