// Profiles of well-known GPUs, for planning on a machine without the GPU:
//
//   KnownMachine("h100-sxm") -> the performance to expect from its data sheet
//
// They are nominal (Machine::nominal), not measured; `loadline doctor`
// measures.
#ifndef LOADLINE_PLANNER_PROBLEM_KNOWN_MACHINES_H_
#define LOADLINE_PLANNER_PROBLEM_KNOWN_MACHINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/machine.h"

namespace loadline::planner {

// In alphabetical order: "a10", "a100-sxm-80gb", ...
std::vector<std::string> KnownMachineNames();

// By one of these names, or by what the GPU's driver calls it ("NVIDIA L4"),
// also without the maker, in other case, or with other punctuation ("RTX
// 4090"). NotFound, with all names, where there is none.
absl::StatusOr<Machine> KnownMachine(absl::string_view name);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_KNOWN_MACHINES_H_
