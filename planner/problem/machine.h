// A machine profile: what the planner knows of the machine that will run the
// plan. Format: loadline.machine/1.
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

struct Machine {
  std::string name;
  int64_t device_bytes = 0;
  int64_t reserved_bytes = 0;  // outside our control: context, libraries
  // Copy rates. Zero or absent in either direction: no copies in any plan.
  double d2h_bytes_per_s = 0;
  double h2d_bytes_per_s = 0;
  int64_t copy_latency_ns = 0;
  // Factor on both rates while both lanes move bytes, in (0, 1].
  double bidirectional = 1.0;
  // Limit for host buffers.
  int64_t host_bytes = 0;
  // On a CPU, copies compete with compute for cores and memory bandwidth, so a
  // plan never runs both at the same time. In JSON under `extra`.
  bool copies_stop_compute = false;
  // Compute time lost per copy besides waiting: on a GPU, a kernel that is
  // synchronised with a copy starts late, even if the copy ended long before.
  // The search counts it; the replay of a plan, whose rules the format fixes,
  // does not. In JSON under `extra`.
  int64_t switch_ns = 0;
  // From a data sheet, not measured (planner/problem/known_machines.h). In JSON
  // under `extra`.
  bool nominal = false;
  // Why the profile is to be measured again once that is possible; empty: it is
  // not. In JSON under `extra`.
  std::string provisional;
  // Measured nanoseconds by operator key (models::OperatorKey).
  std::map<std::string, int64_t> ops;
  std::optional<Rates> rates;
  // The algorithm that was measured to be the fastest, by operator key, where a
  // library offers several. For executors only; in JSON under `extra`.
  std::map<std::string, std::string> algorithms;

  bool CanCopy() const { return d2h_bytes_per_s > 0 && h2d_bytes_per_s > 0; }
};

// Reads and writes loadline.machine/1. Errors name the field.
absl::StatusOr<Machine> MachineFromJson(absl::string_view json);
std::string MachineToJson(const Machine& machine);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_MACHINE_H_
