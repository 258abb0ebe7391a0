// The machine profile as a part of another document. Internal to the readers.
#ifndef LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_
#define LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine.h"

namespace loadline::planner {

// A loadline.machine/2 or /1, which Machine::format_version tells apart.
absl::StatusOr<Machine> ReadMachine(const Json& json);
// Writes /2: all fields, or those of a problem's canonical bytes.
enum class MachineFields { kAll, kCanonical };
void WriteMachine(const Machine& machine, MachineFields fields,
                  JsonWriter& json);

// InvalidArgument, naming the field, where a number is out of its range.
absl::Status ValidateMachine(const Machine& machine);

// Whether loadline.machine/1 has a field for all that this machine's canonical
// bytes tell plans apart by.
bool FitsMachine1(const Machine& machine);
// Writes the canonical bytes as /1; the machine must fit.
void WriteMachine1(const Machine& machine, JsonWriter& json);

// For ReadMachine: /1 alone, not validated, and what both versions have. Null:
// missing. Errors name the field.
absl::StatusOr<Machine> ReadMachine1(const Json& json);
absl::Status ReadAlgorithms(const Json& json, absl::string_view place,
                            Machine& machine);
absl::Status ReadOps(const Json* ops, const Json* rates, Machine& machine);
void WriteOps(const Machine& machine, JsonWriter& json);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_MACHINE_JSON_H_
