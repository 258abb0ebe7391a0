// Where buffers lie, which step writes them, and whether two that share bytes
// are separated in time. In `facts.order`, a buffer is compared only with the
// last writers of its bytes, not with earlier ones. That suffices: if every
// access of a ends before b is written, and every access of b before c is
// written, then every access of a ends before c is written. The same holds if b
// takes over a's bytes in place, or c those of b. Tested in
// tests/planner/verify/verify_buffers_test.cc and against all pairs in
// verify_bytes_test.cc.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify_bytes.h"
#include "planner/verify/verify_facts.h"
#include "planner/verify/verify_parts.h"

namespace loadline::planner {
namespace {

BufferId At(size_t position) {
  return BufferId(static_cast<int32_t>(position));
}

// Is every access of `a` over before the first of `b`?
bool AllBefore(const Plan& plan, const PlanFacts& facts, BufferId a,
               BufferId b) {
  const StepId start = facts.writer[Index(b)];
  // Final: used after the step. Written by none: used before it.
  if (facts.final[Index(a)] || start == kNoStep) return false;
  const StepId write = facts.writer[Index(a)];
  if (write != kNoStep && !facts.Before(plan, write, start)) return false;
  for (StepId reader : facts.readers[Index(a)]) {
    if (!facts.Before(plan, reader, start)) return false;
  }
  return true;  // b's reads come after its write: CheckReadsAfterWrite
}

// Does the step that writes `b` turn `a` into it, as its node allows?
bool BecomesInPlace(const Problem& problem, const Plan& plan,
                    const PlanFacts& facts, BufferId a, BufferId b) {
  const StepId id = facts.writer[Index(b)];
  if (id == kNoStep || facts.final[Index(a)] ||
      plan.steps[Index(id)].kind != StepKind::kNode ||
      plan.buffer(a).offset != plan.buffer(b).offset ||
      plan.buffer(a).bytes != plan.buffer(b).bytes) {
    return false;
  }
  const Step& step = plan.steps[Index(id)];
  if (std::find(step.in.begin(), step.in.end(), a) == step.in.end() ||
      std::find(step.out.begin(), step.out.end(), b) == step.out.end()) {
    return false;
  }
  for (const auto& [in, out] : problem.node(step.node).inplace) {
    if (plan.buffer(a).value == in && plan.buffer(b).value == out) {
      return facts.LastAccess(plan, a, id);
    }
  }
  return false;
}

// `a` was written first, or both are there from the beginning.
absl::Status CheckPair(const Problem& problem, const Plan& plan,
                       const PlanFacts& facts, BufferId a, BufferId b) {
  if (AllBefore(plan, facts, a, b) ||
      BecomesInPlace(problem, plan, facts, a, b)) {
    return absl::OkStatus();
  }
  const std::string where =
      problem.addresses
          ? absl::StrCat("share bytes from offset ",
                         std::max(plan.buffer(a).offset, plan.buffer(b).offset),
                         " on")
          : "are the home of one value";
  return Invalid(BufferName(problem, plan, a), " and ",
                 BufferName(problem, plan, b), " ", where,
                 ", and no order keeps every access of one before every "
                 "access of the other");
}

// Without addresses only the first and the last version of a persistent value
// are known to lie in one place.
absl::Status CheckHomes(const Problem& problem, const Plan& plan,
                        const PlanFacts& facts) {
  const ProblemIndex index = IndexProblem(problem);
  std::vector<BufferId> initial(problem.values.size(), kNoBuffer);
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const ValueId value = plan.buffers[b].value;
    if (facts.writer[b] == kNoStep) initial[Index(value)] = At(b);
  }
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!facts.final[b] || plan.buffers[b].bytes == 0) continue;
    ValueId first = plan.buffers[b].value;
    while (index.previous_version[Index(first)] != kNoValue) {
      first = index.previous_version[Index(first)];
    }
    const BufferId home = initial[Index(first)];
    if (first == plan.buffers[b].value || home == kNoBuffer ||
        plan.buffer(home).space != plan.buffers[b].space) {
      continue;  // in the other space it is final as an output
    }
    LOADLINE_RETURN_IF_ERROR(CheckPair(problem, plan, facts, home, At(b)));
  }
  return absl::OkStatus();
}

absl::Status CheckInitial(const Problem& problem, const Plan& plan,
                          const ProblemIndex& index, BufferId id) {
  const Buffer& buffer = plan.buffer(id);
  const std::string name = BufferName(problem, plan, id);
  if (buffer.value == kNoValue) {
    return Invalid(name, " holds no value and is no step's workspace");
  }
  if (index.producer[Index(buffer.value)] >= 0) {
    return Invalid(name, " is written by no step");
  }
  const Value& value = problem.value(buffer.value);
  if (buffer.bytes != value.bytes) {
    return Invalid(name, " has ", buffer.bytes, " bytes, not ", value.bytes);
  }
  if (buffer.space == Space::kHost && !value.persistent) {
    return Invalid(name, " is an input and begins on the device, not on the ",
                   "host");
  }
  if (buffer.space == Space::kHost && !value.offload) {
    return Invalid(name, " lives on the host, where it may not be copied");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlaces(const Problem& problem, const Plan& plan) {
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    const std::string name = BufferName(problem, plan, At(b));
    if (!problem.addresses) {
      if (buffer.offset == 0) continue;
      return Invalid(name, " has an offset, but the problem has no addresses");
    }
    if (buffer.offset % problem.alignment_bytes != 0) {
      return Invalid(name, ": its offset ", buffer.offset,
                     " is no multiple of ", problem.alignment_bytes);
    }
    const bool host = buffer.space == Space::kHost;
    const int64_t limit = host ? plan.host_bytes : plan.arena_bytes;
    if (buffer.offset + buffer.bytes > limit) {
      return Invalid(name, " ends at ", buffer.offset + buffer.bytes,
                     ", beyond ", host ? "host_bytes " : "arena_bytes ", limit);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInitialBuffers(const Problem& problem, const Plan& plan,
                                 const PlanFacts& facts) {
  const ProblemIndex index = IndexProblem(problem);
  std::vector<int32_t> first(problem.values.size(), -1);
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (facts.writer[b] != kNoStep) continue;
    LOADLINE_RETURN_IF_ERROR(CheckInitial(problem, plan, index, At(b)));
    int32_t& seen = first[Index(plan.buffers[b].value)];
    if (seen >= 0) {
      return Invalid(BufferName(problem, plan, At(b)), " and buffer ", seen,
                     " both hold their value from the beginning");
    }
    seen = static_cast<int32_t>(b);
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].persistent && index.producer[v] < 0 && first[v] < 0) {
      return Invalid("persistent ",
                     ValueName(problem, ValueId(static_cast<int32_t>(v))),
                     " has no buffer that holds it from the beginning");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReadsAfterWrite(const Problem& problem, const Plan& plan,
                                  const PlanFacts& facts) {
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const StepId writer = facts.writer[b];
    if (writer == kNoStep) continue;
    for (StepId reader : facts.readers[b]) {
      if (facts.Before(plan, writer, reader)) continue;
      return Invalid(StepName(problem, plan, reader), " reads ",
                     BufferName(problem, plan, At(b)),
                     ", but does not surely come after ",
                     StepName(problem, plan, writer), ", which writes it");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOverlaps(const Problem& problem, const Plan& plan,
                           const PlanFacts& facts) {
  if (!problem.addresses) return CheckHomes(problem, plan, facts);
  LastWriters written(plan);
  for (BufferId b : InWriteOrder(plan, facts)) {
    for (BufferId a : written.Write(b)) {
      LOADLINE_RETURN_IF_ERROR(CheckPair(problem, plan, facts, a, b));
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::planner
