// A Problem is all that the planner sees of a training step: values with bytes
// and nodes with nanoseconds; no tensor, no operator. Format:
// loadline.problem/1 (docs/formats.md).
#ifndef LOADLINE_PLANNER_PROBLEM_PROBLEM_H_
#define LOADLINE_PLANNER_PROBLEM_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/ids.h"
#include "planner/problem/machine.h"

namespace loadline::planner {

// One way to keep a value in fewer bytes between its uses.
struct Codec {
  std::string name;
  int64_t bytes = 0;
  int64_t encode_ns = 0;
  int64_t decode_ns = 0;
  bool lossless = true;
  double error = 0.0;
};

struct Value {
  int64_t file_id = 0;
  std::string name;
  int64_t bytes = 0;
  bool persistent = false;  // lives from step to step
  bool offload = true;      // may be copied to the host
  std::vector<Codec> stash;
};

// Another way to run a node. Not exact: other rounding, only where allowed.
struct Variant {
  std::string name;
  int64_t time_ns = 0;
  int64_t workspace_bytes = 0;
  bool exact = true;
};

struct Node {
  int64_t file_id = 0;
  std::string name;
  int64_t time_ns = 0;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  int64_t workspace_bytes = 0;
  bool recompute = true;  // false: updates and side effects, run exactly once
  // (input, output): the input's bytes may become the output's.
  std::vector<std::pair<ValueId, ValueId>> inplace;
  std::vector<Variant> variants;
};

struct Problem {
  std::string name;
  std::string time_unit = "ns";
  std::vector<Value> values;
  std::vector<Node> nodes;  // a valid order, the *given order*
  std::vector<ValueId> outputs;
  bool addresses = true;
  int64_t alignment_bytes = 256;
  std::optional<Machine> machine;

  const Value& value(ValueId id) const { return values[Index(id)]; }
  const Node& node(NodeId id) const { return nodes[Index(id)]; }
};

// What is derived from a Problem once and read often.
struct ProblemIndex {
  std::vector<int32_t> producer;  // node position making the value, -1: input
  std::vector<std::vector<NodeId>> consumers;  // in the given order, no repeats
  // For an updated persistent value, its next version; kNoValue otherwise.
  std::vector<ValueId> next_version;
  // For a version made by an update, the one it was made from.
  std::vector<ValueId> previous_version;
  std::vector<bool> is_output;
};
ProblemIndex IndexProblem(const Problem& problem);

// Every rule of the format that is not syntax: ids exist, each value has at
// most one producer, the given order is topological, inplace pairs have equal
// bytes, updates are not recomputable, sums do not overflow int64.
absl::Status ValidateProblem(const Problem& problem);

// Reads (and validates) and writes loadline.problem/1. Errors are
// InvalidArgument and name the field and the id.
absl::StatusOr<Problem> ProblemFromJson(absl::string_view json);
std::string ProblemToJson(const Problem& problem);

// Lower-case hex SHA-256 of the canonical bytes (docs/formats.md), with the
// machine in the version of its document.
std::string ProblemSha256(const Problem& problem);
// Whether a plan that names this hash is for this problem: the hash with the
// machine in either version, so that plans outlive a problem written again.
bool IsProblemSha256(const Problem& problem, absl::string_view sha256);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_PROBLEM_H_
