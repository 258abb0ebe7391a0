// A machine profile: what the planner knows of the machine that will run the
// plan. Format: loadline.machine/2 (docs/formats.md).
#ifndef LOADLINE_PLANNER_PROBLEM_MACHINE_H_
#define LOADLINE_PLANNER_PROBLEM_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::planner {

// Prices for operators that were never measured (a roofline).
struct Rates {
  // FLOP/s of dense matrix products, by type name ("f32", "bf16").
  std::map<std::string, double> matmul_flop_per_s;
  double memory_bytes_per_s = 0;
  int64_t launch_ns = 0;
};

// Copies in one direction. A rate of 0: there are none.
struct Link {
  double bytes_per_s = 0;
  int64_t latency_ns = 0;  // of each copy, before it moves bytes
};

struct Machine {
  // Of the document: 1 where a problem was read with a loadline.machine/1,
  // whose canonical bytes its hash keeps (problem.h). Always written as 2.
  int format_version = 2;
  std::string name;
  int64_t device_bytes = 0;
  int64_t reserved_bytes = 0;  // outside our control: context, libraries
  int64_t host_bytes = 0;      // limit for host buffers
  // Disks are kept and written back; no plan uses one.
  int64_t disk_bytes = 0;
  Link d2h, h2d;     // device to host and back
  Link write, read;  // host to disk and back
  // Factor on both rates of a pair while both move bytes, in (0, 1].
  double d2h_h2d_factor = 1.0;
  double write_read_factor = 1.0;
  // Compute time lost per copy on d2h or h2d besides waiting: on a GPU, a
  // kernel that is synchronised with a copy starts late, even if the copy ended
  // long before. Every step time counts it.
  int64_t copy_overhead_ns = 0;
  // On a CPU, copies compete with compute for cores and memory bandwidth, so a
  // plan never runs both at the same time.
  bool copies_exclude_compute = false;
  // From a data sheet, not measured (planner/problem/known_machines.h).
  bool nominal = false;
  // The algorithm that was measured to be the fastest, by operator key, where a
  // library offers several. For executors only.
  std::map<std::string, std::string> algorithms;
  // Measured nanoseconds by operator key (models::OperatorKey).
  std::map<std::string, int64_t> ops;
  std::optional<Rates> rates;
  // Why the profile is to be measured again once that is possible; empty: it is
  // not. Not in JSON: tools/pipeline/machine_profile.h keeps it.
  std::string provisional;

  bool CanCopy() const { return d2h.bytes_per_s > 0 && h2d.bytes_per_s > 0; }
};

// Reads loadline.machine/2 and /1, and writes /2. Errors name the field.
absl::StatusOr<Machine> MachineFromJson(absl::string_view json);
std::string MachineToJson(const Machine& machine);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_MACHINE_H_
