// A happens before b if lane order and waits lead from a to b. Each step gets a
// vector clock: per lane, the number of steps that have ended before it starts.
// Lanes run in order, so one number per lane suffices (Fidge 1988, Mattern
// 1989). Tested through tests/planner/verify/verify_test.cc.
#include "planner/verify/verify_facts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify_bytes.h"

namespace loadline::planner {
namespace {

// Ids are signed; a negative one becomes huge and is refused as well.
template <typename Id, typename T>
bool Exists(Id id, const std::vector<T>& things) {
  return Index(id) < things.size();
}

absl::Status CheckNodeStep(const Problem& problem, const Plan& plan,
                           const Step& step, const std::string& name) {
  if (!Exists(step.node, problem.nodes)) {
    return Invalid(name, ": its node does not exist");
  }
  const Node& node = problem.node(step.node);
  if (step.in.size() != node.inputs.size()) {
    return Invalid(name, ": ", step.in.size(), " input buffers for the ",
                   node.inputs.size(), " inputs of ",
                   NodeName(problem, step.node));
  }
  if (step.out.size() != node.outputs.size()) {
    return Invalid(name, ": ", step.out.size(), " output buffers for the ",
                   node.outputs.size(), " outputs of ",
                   NodeName(problem, step.node));
  }
  for (BufferId id : step.in) {
    if (!Exists(id, plan.buffers)) {
      return Invalid(name, ": an input buffer does not exist");
    }
  }
  for (BufferId id : step.out) {
    if (!Exists(id, plan.buffers)) {
      return Invalid(name, ": an output buffer does not exist");
    }
  }
  if (step.workspace != kNoBuffer && !Exists(step.workspace, plan.buffers)) {
    return Invalid(name, ": its workspace buffer does not exist");
  }
  if (!step.variant.empty() && FindVariant(node, step.variant) == nullptr) {
    return Invalid(name, ": ", NodeName(problem, step.node),
                   " has no variant '", step.variant, "'");
  }
  return absl::OkStatus();
}

absl::Status CheckCopyStep(const Problem& problem, const Plan& plan,
                           const Step& step, const std::string& name) {
  if (!Exists(step.from, plan.buffers) || !Exists(step.to, plan.buffers)) {
    return Invalid(name, ": the buffer it reads or writes does not exist");
  }
  if (step.kind == StepKind::kCopy) return absl::OkStatus();
  const ValueId value = plan.buffer(step.from).value;
  if (value == kNoValue ||
      FindCodec(problem.value(value), step.codec) == nullptr) {
    return Invalid(name, ": ", BufferName(problem, plan, step.from),
                   " has no codec '", step.codec, "'");
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const Problem& problem, const Plan& plan, size_t s) {
  const Step& step = plan.steps[s];
  const std::string name = absl::StrCat("step ", s);
  const int lane = static_cast<int>(step.lane);
  if (lane < 0 || lane >= kLaneCount) return Invalid(name, ": no such lane");
  for (StepId id : step.wait) {
    if (!Exists(id, plan.steps)) {
      return Invalid(name, ": waits for a step that does not exist");
    }
  }
  switch (step.kind) {
    case StepKind::kNode:
      return CheckNodeStep(problem, plan, step, name);
    case StepKind::kCopy:
    case StepKind::kEncode:
    case StepKind::kDecode:
      return CheckCopyStep(problem, plan, step, name);
  }
  return Invalid(name, ": no such kind of step");
}

// Fills order, place, rank and ended: lane by lane, whatever can go next.
absl::Status OrderSteps(const Problem& problem, const Plan& plan,
                        PlanFacts& facts) {
  const size_t count = plan.steps.size();
  std::array<std::vector<StepId>, kLaneCount> lanes;
  facts.rank.resize(count);
  for (size_t s = 0; s < count; ++s) {
    auto& lane = lanes[static_cast<size_t>(plan.steps[s].lane)];
    facts.rank[s] = static_cast<int32_t>(lane.size());
    lane.push_back(StepId(static_cast<int32_t>(s)));
  }
  facts.place.assign(count, -1);
  facts.ended.assign(count, {});
  std::array<size_t, kLaneCount> next = {};
  const auto try_step = [&](size_t l) {
    const StepId id = lanes[l][next[l]];
    std::array<int32_t, kLaneCount> clock = {};
    const auto join = [&](StepId before) {
      const auto lane = static_cast<size_t>(plan.steps[Index(before)].lane);
      for (size_t i = 0; i < kLaneCount; ++i) {
        clock[i] = std::max(clock[i], facts.ended[Index(before)][i]);
      }
      clock[lane] = std::max(clock[lane], facts.rank[Index(before)] + 1);
    };
    for (StepId wait : plan.steps[Index(id)].wait) {
      if (facts.place[Index(wait)] < 0) return false;
      join(wait);
    }
    if (next[l] > 0) join(lanes[l][next[l] - 1]);
    facts.ended[Index(id)] = clock;
    facts.place[Index(id)] = static_cast<int32_t>(facts.order.size());
    facts.order.push_back(id);
    ++next[l];
    return true;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t l = 0; l < kLaneCount; ++l) {
      while (next[l] < lanes[l].size() && try_step(l)) moved = true;
    }
  }
  for (size_t l = 0; l < kLaneCount; ++l) {
    if (next[l] < lanes[l].size()) {
      return Invalid(StepName(problem, plan, lanes[l][next[l]]),
                     " can never start: it and its waits wait for each other");
    }
  }
  return absl::OkStatus();
}

absl::Status AddWrite(const Problem& problem, const Plan& plan, BufferId buffer,
                      StepId step, PlanFacts& facts) {
  StepId& writer = facts.writer[Index(buffer)];
  if (writer != kNoStep) {
    return Invalid(BufferName(problem, plan, buffer), " is written by ",
                   StepName(problem, plan, writer), " and by ",
                   StepName(problem, plan, step));
  }
  writer = step;
  return absl::OkStatus();
}

// Fills writer, readers and codec.
absl::Status GatherAccesses(const Problem& problem, const Plan& plan,
                            PlanFacts& facts) {
  facts.writer.assign(plan.buffers.size(), kNoStep);
  facts.readers.assign(plan.buffers.size(), {});
  facts.codec.assign(plan.buffers.size(), "");
  for (StepId id : facts.order) {
    const Step& step = plan.steps[Index(id)];
    const auto write = [&](BufferId buffer) {
      return AddWrite(problem, plan, buffer, id, facts);
    };
    if (step.kind == StepKind::kNode) {
      for (BufferId in : step.in) facts.readers[Index(in)].push_back(id);
      for (BufferId out : step.out) LOADLINE_RETURN_IF_ERROR(write(out));
      if (step.workspace != kNoBuffer) {
        LOADLINE_RETURN_IF_ERROR(write(step.workspace));
      }
      continue;
    }
    facts.readers[Index(step.from)].push_back(id);
    LOADLINE_RETURN_IF_ERROR(write(step.to));
    // In `order`, so what `from` holds is known unless it is read too early.
    if (step.kind == StepKind::kEncode) {
      facts.codec[Index(step.to)] = step.codec;
    } else if (step.kind == StepKind::kCopy) {
      facts.codec[Index(step.to)] = facts.codec[Index(step.from)];
    }
  }
  return absl::OkStatus();
}

// A buffer whose later write has overwritten bytes of this one, or kNoBuffer.
BufferId Spoiler(const PlanFacts& facts, const LastWriters& written,
                 BufferId buffer) {
  for (BufferId owner : written.In(buffer)) {
    if (facts.WritePlace(owner) > facts.WritePlace(buffer)) return owner;
  }
  return kNoBuffer;
}

// Of the buffers that may hold `value` at the end, marks as final the last
// written one that nothing overwrites, or records what is missing.
void PickFinal(const Problem& problem, const Plan& plan,
               const LastWriters& written, ValueId value,
               const std::vector<BufferId>& candidates, const std::string& what,
               PlanFacts& facts) {
  BufferId best = kNoBuffer;
  std::string spoiled;
  for (BufferId candidate : candidates) {
    const BufferId spoiler = Spoiler(facts, written, candidate);
    if (spoiler != kNoBuffer) {
      spoiled = absl::StrCat(": ", BufferName(problem, plan, candidate),
                             " is overwritten by ",
                             BufferName(problem, plan, spoiler));
    } else if (best == kNoBuffer ||
               facts.WritePlace(candidate) >= facts.WritePlace(best)) {
      best = candidate;
    }
  }
  if (best != kNoBuffer) {
    facts.final[Index(best)] = true;
  } else {
    facts.missing_at_end[Index(value)] = absl::StrCat(what, spoiled);
  }
}

// Fills final and missing_at_end.
void GatherFinals(const Problem& problem, const Plan& plan, PlanFacts& facts) {
  facts.final.assign(plan.buffers.size(), false);
  facts.missing_at_end.assign(problem.values.size(), "");
  std::vector<std::vector<BufferId>> plain(problem.values.size());
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].value != kNoValue && facts.codec[b].empty()) {
      plain[Index(plan.buffers[b].value)].push_back(
          BufferId(static_cast<int32_t>(b)));
    }
  }
  LastWriters written(plan);  // nothing, where there are no addresses
  if (problem.addresses) {
    for (BufferId id : InWriteOrder(plan, facts)) written.Write(id);
  }
  for (ValueId value : problem.outputs) {
    std::vector<BufferId> candidates;
    for (BufferId id : plain[Index(value)]) {
      if (plan.buffer(id).space == Space::kDevice) candidates.push_back(id);
    }
    PickFinal(problem, plan, written, value, candidates,
              absl::StrCat("output ", ValueName(problem, value),
                           " is on the device in no buffer at the end"),
              facts);
  }
  const ProblemIndex index = IndexProblem(problem);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (!problem.values[v].persistent || index.producer[v] >= 0) continue;
    BufferId home = kNoBuffer;
    for (BufferId id : plain[v]) {
      if (facts.writer[Index(id)] == kNoStep) home = id;
    }
    if (home == kNoBuffer) continue;  // CheckInitialBuffers reports it
    ValueId last{static_cast<int32_t>(v)};
    while (index.next_version[Index(last)] != kNoValue) {
      last = index.next_version[Index(last)];
    }
    std::vector<BufferId> candidates;
    for (BufferId id : plain[Index(last)]) {
      if (plan.buffer(id).space == plan.buffer(home).space &&
          (!problem.addresses ||
           plan.buffer(id).offset == plan.buffer(home).offset)) {
        candidates.push_back(id);
      }
    }
    PickFinal(problem, plan, written, last, candidates,
              absl::StrCat("persistent ", ValueName(problem, last),
                           " does not end where the step began, in ",
                           BufferName(problem, plan, home)),
              facts);
  }
}

}  // namespace

bool PlanFacts::LastAccess(const Plan& plan, BufferId buffer,
                           StepId step) const {
  const StepId write = writer[Index(buffer)];
  if (write != kNoStep && (write == step || !Before(plan, write, step))) {
    return false;
  }
  for (StepId reader : readers[Index(buffer)]) {
    if (reader != step && !Before(plan, reader, step)) return false;
  }
  return true;
}

const Codec* FindCodec(const Value& value, const std::string& name) {
  for (const Codec& codec : value.stash) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

const Variant* FindVariant(const Node& node, const std::string& name) {
  for (const Variant& variant : node.variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

std::string ValueName(const Problem& problem, ValueId id) {
  const Value& value = problem.value(id);
  return absl::StrCat("value ", value.file_id, " '", value.name, "'");
}

std::string NodeName(const Problem& problem, NodeId id) {
  const Node& node = problem.node(id);
  return absl::StrCat("node ", node.file_id, " '", node.name, "'");
}

std::string BufferName(const Problem& problem, const Plan& plan, BufferId id) {
  const ValueId value = plan.buffer(id).value;
  return absl::StrCat(
      "buffer ", static_cast<int64_t>(id), " (",
      value == kNoValue ? "workspace" : ValueName(problem, value), ")");
}

std::string StepName(const Problem& problem, const Plan& plan, StepId id) {
  const Step& step = plan.steps[Index(id)];
  std::string what;
  switch (step.kind) {
    case StepKind::kNode:
      what = NodeName(problem, step.node);
      break;
    case StepKind::kCopy:
      what = absl::StrCat(std::string(LaneName(step.lane)), " copy");
      break;
    case StepKind::kEncode:
      what = absl::StrCat("encode '", step.codec, "'");
      break;
    case StepKind::kDecode:
      what = absl::StrCat("decode '", step.codec, "'");
      break;
  }
  return absl::StrCat("step ", static_cast<int64_t>(id), " (", what, ")");
}

absl::Status CheckReferences(const Problem& problem, const Plan& plan) {
  if (plan.buffers.size() > INT32_MAX || plan.steps.size() > INT32_MAX) {
    return Invalid("more than 2^31 - 1 buffers or steps");
  }
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.value != kNoValue && !Exists(buffer.value, problem.values)) {
      return Invalid("buffer ", b, ": its value does not exist");
    }
    if (buffer.space != Space::kDevice && buffer.space != Space::kHost) {
      return Invalid("buffer ", b, ": no such space");
    }
    if (buffer.bytes < 0 || buffer.offset < 0 ||
        buffer.bytes > INT64_MAX - buffer.offset) {
      return Invalid("buffer ", b, ": its offset ", buffer.offset,
                     " and bytes ", buffer.bytes, " are negative or overflow");
    }
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    LOADLINE_RETURN_IF_ERROR(CheckStep(problem, plan, s));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanFacts> GatherFacts(const Problem& problem,
                                      const Plan& plan) {
  PlanFacts facts;
  LOADLINE_RETURN_IF_ERROR(OrderSteps(problem, plan, facts));
  LOADLINE_RETURN_IF_ERROR(GatherAccesses(problem, plan, facts));
  GatherFinals(problem, plan, facts);
  return facts;
}

}  // namespace loadline::planner
