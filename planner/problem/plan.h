// A Plan is what a step does: buffers at addresses and steps on three lanes.
// Format: loadline.plan/1 (docs/formats.md). A plan says nothing about time
// except its prediction; its order is lane order plus waits.
#ifndef LOADLINE_PLANNER_PROBLEM_PLAN_H_
#define LOADLINE_PLANNER_PROBLEM_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/certificate.h"
#include "planner/problem/ids.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

enum class Space { kDevice, kHost };
enum class Lane { kCompute, kD2h, kH2d };
inline constexpr int kLaneCount = 3;
enum class Action { kKeep, kRecompute, kOffload, kStash };

// One instance of one value at one address.
struct Buffer {
  ValueId value = kNoValue;  // kNoValue: a workspace
  int64_t bytes = 0;
  Space space = Space::kDevice;
  int64_t offset = 0;  // 0 and unused where the problem has no addresses
};

enum class StepKind { kNode, kCopy, kEncode, kDecode };

struct Step {
  Lane lane = Lane::kCompute;
  StepKind kind = StepKind::kNode;
  // kNode:
  NodeId node{-1};
  std::vector<BufferId> in;   // as the node's inputs
  std::vector<BufferId> out;  // as the node's outputs
  BufferId workspace = kNoBuffer;
  std::string variant;  // empty: the node itself
  // kCopy, kEncode, kDecode:
  BufferId from = kNoBuffer;
  BufferId to = kNoBuffer;
  std::string codec;  // kEncode, kDecode
  // Steps that must have ended before this one starts, besides the step
  // before it on its lane.
  std::vector<StepId> wait;
};

struct Decision {
  ValueId value = kNoValue;
  Action action = Action::kKeep;
  std::string why;
};

struct Prediction {
  // End of the last step on any lane, and Machine::copy_overhead_ns for each
  // copy.
  int64_t step_ns = 0;
  int64_t compute_ns = 0;    // sum over compute steps
  int64_t recompute_ns = 0;  // the part of compute_ns beyond first runs
  int64_t d2h_bytes = 0;
  int64_t h2d_bytes = 0;
  int64_t stall_ns = 0;  // step_ns - compute_ns
  // Most bytes of device buffers alive at one moment of the replay. A buffer
  // is alive from the start of the first step that accesses it (from the
  // beginning, if no step writes it) to the end of the last (to the end, if it
  // holds an output or the last version of a persistent value); an in-place
  // pair counts once.
  int64_t peak_bytes = 0;
};

struct Bounds {
  int64_t peak_bytes = 0;
  int64_t step_ns = 0;
};

// How the plan was searched: where layers repeat, a few of them stand for all.
// Zeros: the whole was searched. Written under `extra`, not read.
struct Searched {
  int64_t layers = 0;  // of the problem
  int64_t searched_layers = 0;
  int64_t searched_nodes = 0;
};

struct Plan {
  std::string problem_name;
  std::string problem_sha256;
  int64_t budget_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t host_bytes = 0;
  Prediction predicted;
  Bounds bounds;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;  // listed so that every step follows its waits
  std::vector<NodeId> sequence;
  std::vector<Decision> decisions;
  // Proves `bounds`; without one they are estimates.
  std::optional<Certificate> certificate;
  Searched searched;

  const Buffer& buffer(BufferId id) const { return buffers[Index(id)]; }
};

// Reads and writes loadline.plan/1. Node and value ids in the file are the
// problem file's. Reading checks syntax and references only; whether the plan
// is valid is Verify's word.
absl::StatusOr<Plan> PlanFromJson(absl::string_view json,
                                  const Problem& problem);
std::string PlanToJson(const Plan& plan, const Problem& problem);

absl::string_view LaneName(Lane lane);
absl::string_view ActionName(Action action);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_PLAN_H_
