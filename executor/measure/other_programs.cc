// See other_programs.h. Tested in other_programs_test.cc.
#include "executor/measure/other_programs.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "executor/measure/steady_clock.h"

namespace loadline::executor {
namespace {

// The kernel counts in ticks of 10 ms, for each processor.
constexpr int64_t kLeastNs = 300'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

// The fields of a line of /proc/stat that are not work: idle and iowait. Those
// from `guest` on are counted in `user` and `nice` already.
constexpr int kIdle = 3, kIoWait = 4, kGuest = 8;

int64_t BusyNsNow(const cpu_set_t& processors) {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return BusyNs(text, processors, sysconf(_SC_CLK_TCK));
}

int64_t OwnNs() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return -1;
  const auto ns = [](const timeval& time) {
    return time.tv_sec * kNsPerSecond + time.tv_usec * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

int64_t BusyNs(absl::string_view proc_stat, const cpu_set_t& processors,
               int64_t ticks_per_s) {
  int64_t ticks = 0;
  bool known = false;
  for (absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int processor = 0;
    // "cpu" alone is the sum of all.
    if (words.empty() || words[0].substr(0, 3) != "cpu" ||
        !absl::SimpleAtoi(words[0].substr(3), &processor) || processor < 0 ||
        processor >= CPU_SETSIZE || !CPU_ISSET(processor, &processors)) {
      continue;
    }
    known = true;
    const int fields =
        std::min<int>(kGuest, static_cast<int>(words.size()) - 1);
    for (int field = 0; field < fields; ++field) {
      int64_t count = 0;
      if (field == kIdle || field == kIoWait ||
          !absl::SimpleAtoi(words[field + 1], &count)) {
        continue;
      }
      ticks += count;
    }
  }
  return known && ticks_per_s > 0 ? ticks * (kNsPerSecond / ticks_per_s) : -1;
}

OtherPrograms::OtherPrograms() : begin_ns_(SteadyNowNs()) {
  CPU_ZERO(&processors_);
  sched_getaffinity(0, sizeof processors_, &processors_);
  busy_ns_ = BusyNsNow(processors_);
  own_ns_ = OwnNs();
}

double OtherPrograms::Share() const {
  const int64_t took_ns = SteadyNowNs() - begin_ns_;
  const int64_t busy_ns = BusyNsNow(processors_), own_ns = OwnNs();
  if (took_ns < kLeastNs || busy_ns < 0 || busy_ns_ < 0 || own_ns < 0 ||
      own_ns_ < 0) {
    return 0;
  }
  const auto others_ns =
      static_cast<double>((busy_ns - busy_ns_) - (own_ns - own_ns_));
  const double all_ns =
      static_cast<double>(took_ns) * std::max(1, CPU_COUNT(&processors_));
  return std::clamp(others_ns / all_ns, 0.0, 1.0);
}

}  // namespace loadline::executor
