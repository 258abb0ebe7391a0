// The rules for single steps. Tested in
// tests/planner/verify/verify_steps_test.cc.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify_facts.h"
#include "planner/verify/verify_parts.h"

namespace loadline::planner {
namespace {

class StepChecker {
 public:
  StepChecker(const Problem& problem, const Plan& plan, const PlanFacts& facts)
      : problem_(problem), plan_(plan), facts_(facts) {}

  absl::Status Check(StepId id) const {
    switch (plan_.steps[Index(id)].kind) {
      case StepKind::kNode:
        return CheckNode(id);
      case StepKind::kCopy:
        return CheckCopy(id);
      case StepKind::kEncode:
      case StepKind::kDecode:
        return CheckCodec(id);
    }
    return absl::OkStatus();
  }

 private:
  std::string Name(StepId id) const { return StepName(problem_, plan_, id); }
  std::string Name(BufferId id) const {
    return BufferName(problem_, plan_, id);
  }

  absl::Status CheckComputeLane(StepId id) const {
    const Lane lane = plan_.steps[Index(id)].lane;
    if (lane == Lane::kCompute) return absl::OkStatus();
    return Invalid(Name(id), " is on the ", std::string(LaneName(lane)),
                   " lane; it belongs on the compute lane");
  }

  // The buffer is on the device and holds (or is to hold) the whole plain
  // value.
  absl::Status CheckPlain(StepId id, BufferId buffer, ValueId value,
                          const char* use) const {
    if (plan_.buffer(buffer).value != value) {
      return Invalid(Name(id), " ", use, " ", ValueName(problem_, value),
                     " but is given ", Name(buffer));
    }
    if (plan_.buffer(buffer).space != Space::kDevice) {
      return Invalid(Name(id), " ", use, " ", Name(buffer),
                     ", which is on the host");
    }
    if (!facts_.codec[Index(buffer)].empty()) {
      return Invalid(Name(id), " ", use, " ", Name(buffer),
                     ", which is encoded with '", facts_.codec[Index(buffer)],
                     "'");
    }
    return CheckBytes(id, buffer, problem_.value(value).bytes);
  }

  absl::Status CheckBytes(StepId id, BufferId buffer, int64_t bytes) const {
    if (plan_.buffer(buffer).bytes == bytes) return absl::OkStatus();
    return Invalid(Name(id), ": ", Name(buffer), " has ",
                   plan_.buffer(buffer).bytes, " bytes, not ", bytes);
  }

  absl::Status CheckNode(StepId id) const {
    LOADLINE_RETURN_IF_ERROR(CheckComputeLane(id));
    const Step& step = plan_.steps[Index(id)];
    const Node& node = problem_.node(step.node);
    for (size_t i = 0; i < step.in.size(); ++i) {
      LOADLINE_RETURN_IF_ERROR(
          CheckPlain(id, step.in[i], node.inputs[i], "reads"));
    }
    for (size_t i = 0; i < step.out.size(); ++i) {
      LOADLINE_RETURN_IF_ERROR(
          CheckPlain(id, step.out[i], node.outputs[i], "writes"));
    }
    const int64_t need = step.variant.empty()
                             ? node.workspace_bytes
                             : FindVariant(node, step.variant)->workspace_bytes;
    if (step.workspace == kNoBuffer) {
      if (need == 0) return absl::OkStatus();
      return Invalid(Name(id), " has no workspace; it needs ", need, " bytes");
    }
    if (need == 0) {
      return Invalid(Name(id), " needs no workspace, so it must be null, not ",
                     Name(step.workspace));
    }
    const Buffer& workspace = plan_.buffer(step.workspace);
    if (workspace.value != kNoValue || workspace.space != Space::kDevice) {
      return Invalid(Name(id), ": its workspace ", Name(step.workspace),
                     " holds a value or is on the host");
    }
    return CheckBytes(id, step.workspace, need);
  }

  absl::Status CheckCopy(StepId id) const {
    const Step& step = plan_.steps[Index(id)];
    if (step.lane == Lane::kCompute) {
      return Invalid(Name(id), " is a copy on the compute lane");
    }
    if (!problem_.machine.has_value() || !problem_.machine->CanCopy()) {
      return Invalid(Name(id),
                     ": a copy, but the problem's machine has no copy rates");
    }
    const bool out = step.lane == Lane::kD2h;
    const Buffer& from = plan_.buffer(step.from);
    const Buffer& to = plan_.buffer(step.to);
    if (from.space != (out ? Space::kDevice : Space::kHost) ||
        to.space != (out ? Space::kHost : Space::kDevice)) {
      return Invalid(Name(id), " does not go from ",
                     out ? "device to host" : "host to device", ": ",
                     Name(step.from), " to ", Name(step.to));
    }
    if (from.value == kNoValue || from.value != to.value) {
      return Invalid(Name(id), " copies ", Name(step.from), " to ",
                     Name(step.to), ": not the same value");
    }
    if (!problem_.value(from.value).offload) {
      return Invalid(Name(id), " copies ", ValueName(problem_, from.value),
                     ", which may not be copied to the host");
    }
    LOADLINE_RETURN_IF_ERROR(CheckBytes(id, step.from, HeldBytes(step.from)));
    return CheckBytes(id, step.to, HeldBytes(step.from));
  }

  // Bytes of what the buffer holds: its value, plain or encoded.
  int64_t HeldBytes(BufferId buffer) const {
    const Value& value = problem_.value(plan_.buffer(buffer).value);
    const std::string& codec = facts_.codec[Index(buffer)];
    // A codec that the value lacks came in by a copy of another value, which
    // CheckCopy has refused at that copy or will refuse there.
    const Codec* found = codec.empty() ? nullptr : FindCodec(value, codec);
    return found == nullptr ? value.bytes : found->bytes;
  }

  absl::Status CheckCodec(StepId id) const {
    LOADLINE_RETURN_IF_ERROR(CheckComputeLane(id));
    const Step& step = plan_.steps[Index(id)];
    const bool encode = step.kind == StepKind::kEncode;
    const BufferId plain = encode ? step.from : step.to;
    const BufferId encoded = encode ? step.to : step.from;
    const ValueId value = plan_.buffer(step.from).value;
    LOADLINE_RETURN_IF_ERROR(
        CheckPlain(id, plain, value, encode ? "reads" : "writes"));
    if (plan_.buffer(encoded).value != value) {
      return Invalid(Name(id), " turns ", Name(step.from), " into ",
                     Name(step.to), ": not the same value");
    }
    if (plan_.buffer(encoded).space != Space::kDevice) {
      return Invalid(Name(id), ": ", Name(encoded), " is on the host");
    }
    if (facts_.codec[Index(encoded)] != step.codec) {
      return Invalid(Name(id), ": ", Name(encoded), " is not encoded with '",
                     step.codec, "'");
    }
    return CheckBytes(id, encoded,
                      FindCodec(problem_.value(value), step.codec)->bytes);
  }

  const Problem& problem_;
  const Plan& plan_;
  const PlanFacts& facts_;
};

}  // namespace

absl::Status CheckSteps(const Problem& problem, const Plan& plan,
                        const PlanFacts& facts) {
  const StepChecker checker(problem, plan, facts);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    LOADLINE_RETURN_IF_ERROR(checker.Check(StepId(static_cast<int32_t>(s))));
  }
  return absl::OkStatus();
}

}  // namespace loadline::planner
