// The machine profile as a part of another document. Internal to the readers.
#ifndef LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_
#define LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine.h"

namespace loadline::planner {

absl::StatusOr<Machine> ReadMachine(const Json& json);
// Fields under `extra` are not part of a problem's canonical bytes.
enum class Extra { kLeaveOut, kWrite };
void WriteMachine(const Machine& machine, Extra extra, JsonWriter& json);

// InvalidArgument, naming the field, where a number is out of its range.
absl::Status ValidateMachine(const Machine& machine);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_
