// Who wrote last into each byte, against an array of bytes; and the proof that
// buffers which share bytes are kept apart, against every pair of buffers.
#include "planner/verify/verify_bytes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/verify/verify_facts.h"
#include "planner/verify/verify_parts.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"

namespace loadline::planner {
namespace {

TEST(LastWriters, TellsWhoWroteEachByteLast) {
  constexpr int kBytes = 48;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    TestRandom random(seed);
    Plan plan;
    for (int b = 0; b < 40; ++b) {
      Buffer buffer;
      buffer.space = random.OneIn(3) ? Space::kHost : Space::kDevice;
      buffer.offset = random.In(0, kBytes - 1);
      buffer.bytes = random.In(0, kBytes - buffer.offset);
      plan.buffers.push_back(buffer);
    }
    LastWriters written(plan);
    std::vector<int> owner[2] = {std::vector<int>(kBytes, -1),
                                 std::vector<int>(kBytes, -1)};
    for (int b = 0; b < 40; ++b) {
      const Buffer& buffer = plan.buffers[b];
      std::vector<int>& bytes = owner[static_cast<int>(buffer.space)];
      std::vector<BufferId> before;
      for (int64_t at = buffer.offset; at < buffer.offset + buffer.bytes;
           ++at) {
        if (bytes[at] >= 0 &&
            (at == buffer.offset || bytes[at] != bytes[at - 1])) {
          before.push_back(BufferId{bytes[at]});
        }
      }
      for (int64_t at = buffer.offset; at < buffer.offset + buffer.bytes;
           ++at) {
        bytes[at] = b;
      }
      EXPECT_EQ(written.In(BufferId{b}), before);
      EXPECT_EQ(written.Write(BufferId{b}), before);
      if (buffer.bytes > 0) {
        EXPECT_EQ(written.In(BufferId{b}), std::vector<BufferId>{BufferId{b}});
      }
    }
  }
}

// The rule of docs/formats.md for one pair, word by word.
bool KeptApart(const Problem& problem, const Plan& plan, const PlanFacts& facts,
               BufferId a, BufferId b) {
  const StepId start = facts.writer[Index(b)];
  if (facts.final[Index(a)] || start == kNoStep) return false;
  std::vector<StepId> accesses = facts.readers[Index(a)];
  if (facts.writer[Index(a)] != kNoStep) {
    accesses.push_back(facts.writer[Index(a)]);
  }
  const auto before = [&](StepId s) { return facts.Before(plan, s, start); };
  if (std::all_of(accesses.begin(), accesses.end(), before)) return true;
  const Step& step = plan.steps[Index(start)];
  if (step.kind != StepKind::kNode ||
      plan.buffer(a).offset != plan.buffer(b).offset ||
      plan.buffer(a).bytes != plan.buffer(b).bytes ||
      std::find(step.in.begin(), step.in.end(), a) == step.in.end()) {
    return false;
  }
  return std::any_of(problem.node(step.node).inplace.begin(),
                     problem.node(step.node).inplace.end(),
                     [&](const auto& pair) {
                       return pair.first == plan.buffer(a).value &&
                              pair.second == plan.buffer(b).value;
                     }) &&
         facts.writer[Index(a)] != start &&
         std::all_of(accesses.begin(), accesses.end(),
                     [&](StepId s) { return s == start || before(s); });
}

bool EveryPairKeptApart(const Problem& problem, const Plan& plan,
                        const PlanFacts& facts) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Buffer& a = plan.buffers[i];
      const Buffer& b = plan.buffers[j];
      const bool apart = a.space != b.space ||
                         std::max(a.offset, b.offset) >=
                             std::min(a.offset + a.bytes, b.offset + b.bytes);
      const BufferId x{static_cast<int32_t>(i)}, y{static_cast<int32_t>(j)};
      if (!apart && !KeptApart(problem, plan, facts, x, y) &&
          !KeptApart(problem, plan, facts, y, x)) {
        return false;
      }
    }
  }
  return true;
}

TEST(CheckOverlaps, AgreesWithEveryPairOfBuffers) {
  int kept = 0, broken = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem =
        RandomProblem(seed, 8 + static_cast<int>(seed % 20), true, true);
    const Plan valid = SimplePlan(problem, seed);
    TestRandom random(seed);
    const auto any = [&] {
      return random.In(0, static_cast<int64_t>(valid.buffers.size()) - 1);
    };
    for (int change = 0; change < 60; ++change) {
      Plan plan = valid;
      Buffer& moved = plan.buffers[any()];
      const Buffer& to = plan.buffers[any()];
      moved.offset = to.offset + problem.alignment_bytes * random.In(0, 1);
      const absl::StatusOr<PlanFacts> facts = GatherFacts(problem, plan);
      ASSERT_TRUE(facts.ok()) << facts.status();
      const bool apart = EveryPairKeptApart(problem, plan, *facts);
      EXPECT_EQ(CheckOverlaps(problem, plan, *facts).ok(), apart);
      ++(apart ? kept : broken);
    }
  }
  EXPECT_GT(kept, 500);
  EXPECT_GT(broken, 500);
}

}  // namespace
}  // namespace loadline::planner
