// Facts about a plan that the proof needs, derived without trusting the plan:
// the order that lanes and waits imply, and the accesses of each buffer.
// Internal to Verify and Replay.
#ifndef LOADLINE_PLANNER_VERIFY_VERIFY_FACTS_H_
#define LOADLINE_PLANNER_VERIFY_VERIFY_FACTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

inline constexpr StepId kNoStep{-1};

struct PlanFacts {
  // All steps, each after the one before it on its lane and after its waits.
  std::vector<StepId> order;
  std::vector<int32_t> place;  // by step: its position in `order`
  std::vector<int32_t> rank;   // by step: its position in its lane
  // By step and lane: how many of the lane's steps have surely ended when the
  // step starts (a vector clock).
  std::vector<std::array<int32_t, kLaneCount>> ended;
  // By buffer.
  std::vector<StepId> writer;  // kNoStep: holds its value from the beginning
  std::vector<std::vector<StepId>> readers;
  std::vector<std::string> codec;  // what it is encoded with; empty: plain
  std::vector<bool> final;         // must be intact at the end of the step
  // By value: what goes wrong at the end of the step (an output or a last
  // version that is nowhere); empty where all is well.
  std::vector<std::string> missing_at_end;

  // Does `a` end before `b` starts, in any timing?
  bool Before(const Plan& plan, StepId a, StepId b) const {
    const auto lane = static_cast<size_t>(plan.steps[Index(a)].lane);
    return ended[Index(b)][lane] > rank[Index(a)];
  }
  // Where the writer of a buffer stands in `order`; -1: it holds its value from
  // the beginning.
  int32_t WritePlace(BufferId buffer) const {
    const StepId step = writer[Index(buffer)];
    return step == kNoStep ? -1 : place[Index(step)];
  }
  // Does every access of `buffer` but by `step` itself end before `step`?
  bool LastAccess(const Plan& plan, BufferId buffer, StepId step) const;
};

// Every id in the plan names something, every enumerator is one, and a node
// step has as many buffers as its node has inputs and outputs.
absl::Status CheckReferences(const Problem& problem, const Plan& plan);

// Needs a valid problem and CheckReferences. Errors: steps that wait for each
// other, a buffer that two steps write.
absl::StatusOr<PlanFacts> GatherFacts(const Problem& problem, const Plan& plan);

// The codec of that name, or null.
const Codec* FindCodec(const Value& value, const std::string& name);
// The node's variant of that name, or null.
const Variant* FindVariant(const Node& node, const std::string& name);

// For messages: "value 3 'conv.out'", "node 4 'conv'", "buffer 5 (value 3
// 'conv.out')", "step 6 (node 4 'conv')", with the problem file's ids.
std::string ValueName(const Problem& problem, ValueId id);
std::string NodeName(const Problem& problem, NodeId id);
std::string BufferName(const Problem& problem, const Plan& plan, BufferId id);
std::string StepName(const Problem& problem, const Plan& plan, StepId id);

// FailedPrecondition with the parts as its message.
template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_VERIFY_VERIFY_FACTS_H_
