// Changes valid plans of small random problems at random, once or twice, and
// compares what Verify says of them with a second judge (plan_judge.h): neither
// may accept what the other refuses, and what they accept must run on memory
// that knows what it holds (walk_plan.h).
//
//   mutated_plans --seed S --count N
//
// Case i of --seed S is case 0 of --seed S+i: a finding prints its command.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/check.h"
#include "planner/certificate/check_certificate.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/campaign/arguments.h"
#include "tests/campaign/odd_problem.h"
#include "tests/campaign/plan_judge.h"
#include "tests/campaign/run_campaign.h"
#include "tests/campaign/walk_plan.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/verify/corrupt_plan.h"

namespace loadline::planner {
namespace {

constexpr int kMutationsOfAPlan = 40;
constexpr uint64_t kWalks = 2;

// Changes that may or may not do harm, and those of corrupt_plan.h, which do
// harm to a valid plan.
class Mutator {
 public:
  Mutator(const Problem& problem, TestRandom& random)
      : problem_(problem), random_(random) {}

  void Change(Plan& plan, bool is_valid) {
    if (is_valid && random_.OneIn(2)) {
      const auto all = AllCorruptions();
      auto bad = CorruptPlan(problem_, plan, all[Draw(all.size())], random_);
      if (bad.has_value()) plan = *std::move(bad);
      return;
    }
    if (random_.OneIn(2) || plan.steps.empty()) {
      ChangeBuffer(plan);
    } else {
      ChangeStep(plan);
    }
    if (random_.OneIn(8)) ChangeHeading(plan);
  }

 private:
  size_t Draw(size_t count) {
    return static_cast<size_t>(random_.In(0, static_cast<int64_t>(count) - 1));
  }
  BufferId AnyBuffer(const Plan& plan) {
    return BufferId(static_cast<int32_t>(Draw(plan.buffers.size())));
  }

  void ChangeBuffer(Plan& plan) {
    Buffer& one = plan.buffers[Draw(plan.buffers.size())];
    const Buffer& other = plan.buffers[Draw(plan.buffers.size())];
    const int64_t a = problem_.alignment_bytes;
    switch (random_.In(0, 5)) {
      case 0:
        one.offset = other.offset;
        return;
      case 1:
        one.offset = other.offset + (other.bytes + a - 1) / a * a;
        return;
      case 2:
        one.offset += random_.In(-2, 2) * a;
        return;
      case 3:
        one.offset += random_.In(-1, 1);
        return;
      case 4:
        one.value = other.value;
        one.bytes = other.bytes;
        return;
      default:
        one.space = other.space;
        one.offset = other.offset;
    }
  }

  void ChangeStep(Plan& plan) {
    Step& one = plan.steps[Draw(plan.steps.size())];
    const size_t next = Draw(plan.steps.size());
    Step& other = plan.steps[next];
    switch (random_.In(0, 10)) {
      case 0:
        if (!one.wait.empty()) {
          one.wait.erase(one.wait.begin() +
                         static_cast<int64_t>(Draw(one.wait.size())));
        }
        return;
      case 1:
        one.wait.push_back(StepId(static_cast<int32_t>(next)));
        return;
      case 2:
        one.wait.clear();
        return;
      case 3:
        std::swap(one, other);
        return;
      case 4:
        // Neighbours: often harmless.
        if (next > 0) std::swap(plan.steps[next - 1], other);
        return;
      case 5:
        if (!one.in.empty()) one.in[Draw(one.in.size())] = AnyBuffer(plan);
        return;
      case 6:
        if (!one.out.empty()) one.out[Draw(one.out.size())] = AnyBuffer(plan);
        return;
      case 7:
        if (one.kind == StepKind::kNode) return;
        (random_.OneIn(2) ? one.from : one.to) = AnyBuffer(plan);
        return;
      case 8:
        std::swap(one.codec, other.codec);
        std::swap(one.variant, other.variant);
        return;
      case 9:
        if (one.kind == StepKind::kEncode || one.kind == StepKind::kDecode) {
          one.kind = one.kind == StepKind::kEncode ? StepKind::kDecode
                                                   : StepKind::kEncode;
          std::swap(one.from, one.to);
        }
        return;
      default:
        std::swap(one.lane, other.lane);
    }
  }

  void ChangeHeading(Plan& plan) {
    switch (random_.In(0, 3)) {
      case 0:
        plan.arena_bytes += random_.In(-1, 1);
        return;
      case 1:
        plan.budget_bytes += random_.In(-1, 1);
        return;
      case 2:
        plan.host_bytes += random_.In(-1, 1);
        return;
      default:
        plan.decisions.push_back(
            {ValueId(static_cast<int32_t>(Draw(problem_.values.size()))),
             Action::kKeep, "again"});
    }
  }

  const Problem& problem_;
  TestRandom& random_;
};

// What follows from the steps, so that this is not what gives the change away.
void Follow(const Problem& problem, Plan& plan) {
  plan.sequence.clear();
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kNode) plan.sequence.push_back(step.node);
  }
  const auto replay = Replay(problem, plan);
  if (replay.ok()) plan.predicted = *replay;
  plan.bounds = {};
}

Problem DrawProblem(TestRandom& random, bool is_odd) {
  if (is_odd) {
    return OddProblem(random.Next(), static_cast<int>(random.In(0, 10)));
  }
  Problem problem =
      RandomProblem(random.Next(), static_cast<int>(random.In(3, 16)),
                    random.OneIn(2), !random.OneIn(4));
  if (random.OneIn(2)) AddRandomChoices(random.Next(), problem);
  return problem;
}

Plan DrawPlan(const Problem& problem, TestRandom& random, bool may_be_simple) {
  if (may_be_simple && random.OneIn(2)) {
    return SimplePlan(problem, random.Next());
  }
  SolveOptions options;
  options.work_limit = 500;
  options.threads = 1;
  options.bound_work_limit = 0;
  options.allow_retries = false;
  options.permissions = {.lossy = true, .inexact = true};
  // Codecs are used where little else is permitted.
  options.allow_recompute = random.OneIn(3);
  options.allow_offload = random.OneIn(3);
  const auto keep = KeepEverything(problem);
  LOADLINE_CHECK(keep.ok());
  options.budget_bytes =
      random.In(std::min(CertifiedPeakBytes(problem), keep->budget_bytes),
                keep->budget_bytes);
  auto found = Solve(problem, options);
  return found.ok() ? *std::move(found) : *keep;
}

// The errors of a plan's codecs may then add up to more than a plan may make.
void RaiseErrors(Problem& problem, Plan& plan, TestRandom& random) {
  for (Value& value : problem.values) {
    for (Codec& codec : value.stash) {
      codec.lossless = false;
      codec.error = static_cast<double>(random.In(0, 12)) / 10;
    }
  }
  plan.problem_sha256 = ProblemSha256(problem);
}

class Campaign {
 public:
  // The number of plans that only one of the two accepts.
  int64_t Run(uint64_t seed) {
    TestRandom random(seed);
    const bool is_odd = random.OneIn(4);
    Problem problem = DrawProblem(random, is_odd);
    Plan valid = DrawPlan(problem, random, !is_odd);
    if (valid.steps.empty() || valid.buffers.empty()) return 0;
    valid.certificate.reset();
    if (random.OneIn(4)) RaiseErrors(problem, valid, random);
    // Room to move.
    valid.arena_bytes += random.In(0, 3) * problem.alignment_bytes;
    valid.budget_bytes = valid.arena_bytes + random.In(0, 1);
    int64_t findings = Compare(seed, problem, valid, "unchanged");
    const bool is_valid = BrokenRule(problem, valid) == 0;
    for (int i = 0; i < kMutationsOfAPlan; ++i) {
      Plan plan = valid;
      const bool pair = random.OneIn(2);
      for (int change = 0; change < 1 + pair; ++change) {
        Mutator(problem, random).Change(plan, is_valid && change == 0);
      }
      if (!random.OneIn(8)) Follow(problem, plan);
      findings += Compare(seed, problem, plan, pair ? "pair" : "one");
    }
    return findings;
  }

  void Print() const { campaign::PrintCounts(count_); }

 private:
  bool Compare(uint64_t seed, const Problem& problem, const Plan& plan,
               const std::string& kind) {
    const absl::Status verdict = Verify(problem, plan);
    const int rule = BrokenRule(problem, plan);
    ++count_[kind + (rule == 0 ? ", valid" : ", broken")];
    if (rule != 0) ++count_["rule " + std::to_string(rule)];
    if (verdict.ok() == (rule == 0)) {
      return verdict.ok() && FailsWalks(seed, problem, plan);
    }
    std::printf(
        "FOUND --seed %llu --count 1: %s; Verify says %s, the judge %d\n",
        static_cast<unsigned long long>(seed), kind.c_str(),
        verdict.ToString().c_str(), rule);
    std::fflush(stdout);
    return true;
  }

  // What both accept must run.
  static bool FailsWalks(uint64_t seed, const Problem& problem,
                         const Plan& plan) {
    for (uint64_t walk = 0; walk < kWalks; ++walk) {
      const std::string wrong = WalkPlan(problem, plan, seed + walk);
      if (wrong.empty()) continue;
      std::printf("FOUND --seed %llu --count 1: accepted, but %s\n",
                  static_cast<unsigned long long>(seed), wrong.c_str());
      std::fflush(stdout);
      return true;
    }
    return false;
  }

  std::map<std::string, int64_t> count_;
};

int Main(int argc, char** argv) {
  const auto arguments = campaign::ReadArguments(argc, argv, 100);
  if (!arguments.has_value()) return 2;
  Campaign campaign;
  const int64_t findings = campaign::RunCases(
      *arguments, "plans",
      [&](uint64_t seed) { return static_cast<int64_t>(campaign.Run(seed)); });
  campaign.Print();
  return findings > 0 ? 1 : 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
