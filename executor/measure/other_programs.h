// How much of the processors other programs take while something is measured.
#ifndef LOADLINE_EXECUTOR_MEASURE_OTHER_PROGRAMS_H_
#define LOADLINE_EXECUTOR_MEASURE_OTHER_PROGRAMS_H_

#include <sched.h>

#include <cstdint>

#include "absl/strings/string_view.h"

namespace loadline::executor {

// Measures from its construction on.
class OtherPrograms {
 public:
  OtherPrograms();

  // Of the time of the processors that this process may run on, the share that
  // others took, from 0 to 1. 0 as well where the kernel does not say, and for
  // so short a time that its counts are too coarse (0.3 s).
  double Share() const;

 private:
  cpu_set_t processors_;
  int64_t begin_ns_;
  int64_t busy_ns_, own_ns_;  // at the start; -1: unknown
};

// `proc_stat` is the text of /proc/stat (proc(5)), which counts ticks, of which
// a second has `ticks_per_s`. Time that the processors spent working or that a
// hypervisor took from them; -1: the text has none of them.
int64_t BusyNs(absl::string_view proc_stat, const cpu_set_t& processors,
               int64_t ticks_per_s);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_OTHER_PROGRAMS_H_
