// Draws small networks, plans their training steps at random budgets, verifies
// the plans, and runs them disturbed: on the fake device with random speeds of
// the lanes and a launch or copy that fails, and on the CPU with random delays,
// a refused arena and failing reads, writes, launches, copies and steps. After
// a fault the run goes on from its last saved state on a new device, as after a
// crash. In the end the weights must have the bits of an undisturbed run that
// keeps everything.
//
//   OMP_NUM_THREADS=1 planned_runs --seed S --count N
//
// With one thread a case takes some 70 ms; with more, threads wait for each
// other in kernels that take microseconds.
//
// Case i of --seed S is case 0 of --seed S+i: a finding prints its command.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/fake/fake_device.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/campaign/arguments.h"
#include "tests/campaign/faulty_device.h"
#include "tests/campaign/run_campaign.h"
#include "tests/planner/support/random_problem.h"
#include "tests/property/random_network.h"

namespace loadline {
namespace {

using planner::Plan;
using planner::TestRandom;
using Bytes = std::vector<std::byte>;

constexpr int kSteps = 4;
constexpr int kMostAttempts = 3;
constexpr int64_t kMostDelayNs = 20'000;

absl::Status Found(absl::string_view what) { return absl::AbortedError(what); }

absl::Status Found(absl::string_view what, const absl::Status& status) {
  return absl::AbortedError(absl::StrCat(what, ": ", status.ToString()));
}

bool IsInjected(const absl::Status& status) {
  return absl::StrContains(status.message(), kInjected);
}

class Case {
 public:
  Case(uint64_t seed, std::map<std::string, int64_t>& count)
      : random_(seed), count_(count) {}

  // Aborted: a finding.
  absl::Status Run() {
    LOADLINE_RETURN_IF_ERROR(Draw());
    LOADLINE_ASSIGN_OR_RETURN(const Plan keep,
                              planner::KeepEverything(step_.problem));
    executor::CpuDevice device;
    LOADLINE_ASSIGN_OR_RETURN(expected_,
                              TrainNetwork(step_, keep, device, kSteps));
    LOADLINE_ASSIGN_OR_RETURN(const Plan plan, DrawPlan(keep));
    LOADLINE_RETURN_IF_ERROR(RunOnFake(plan));
    return RunOnCpu(plan);
  }

 private:
  absl::Status Draw() {
    Layers layers(static_cast<size_t>(random_.In(0, 10)));
    for (auto& [kind, back] : layers) {
      kind = static_cast<uint8_t>(random_.In(0, 255));
      back = static_cast<uint8_t>(random_.In(0, 255));
    }
    LOADLINE_ASSIGN_OR_RETURN(step_, MakeNetworkStep(layers));
    return absl::OkStatus();
  }

  // A plan at a random budget, or at the smallest met where it cannot be met.
  absl::StatusOr<Plan> DrawPlan(const Plan& keep) {
    planner::SolveOptions options;
    options.seed = random_.Next();
    options.work_limit = random_.In(100, 5'000);
    options.bound_work_limit = random_.OneIn(4) ? 200 : 0;
    options.allow_retries = false;
    options.threads = 1;
    options.allow_recompute = !random_.OneIn(4);
    options.allow_offload = !random_.OneIn(4);
    options.budget_bytes =
        random_.In(keep.budget_bytes * 3 / 10, keep.budget_bytes);
    absl::StatusOr<Plan> plan = planner::Solve(step_.problem, options);
    if (absl::IsResourceExhausted(plan.status())) {
      ++count_["budgets that cannot be met"];
      const auto facts = planner::InfeasibilityOf(plan.status());
      if (!facts.has_value()) return Found("no facts", plan.status());
      options.budget_bytes = facts->smallest_met_bytes;
      plan = planner::Solve(step_.problem, options);
    }
    if (!plan.ok()) return Found("Solve", plan.status());
    ++count_["plans"];
    const absl::Status verdict = planner::Verify(step_.problem, *plan);
    if (!verdict.ok()) return Found("Verify", verdict);
    if (plan->arena_bytes > options.budget_bytes) return Found("over budget");
    const auto read = planner::PlanFromJson(
        planner::PlanToJson(*plan, step_.problem), step_.problem);
    if (!read.ok()) return Found("reading the plan", read.status());
    return read;
  }

  // Only order and errors: its kernels compute nothing.
  absl::Status RunOnFake(const Plan& plan) {
    executor::FakeDeviceOptions options;
    options.machine = SlowMachine();
    for (double& factor : options.slowdown) {
      factor = 0.05 + static_cast<double>(random_.In(0, 999)) / 20;
    }
    const int64_t steps = static_cast<int64_t>(plan.steps.size());
    if (random_.OneIn(3)) options.fail_launch = random_.In(0, kSteps * steps);
    if (random_.OneIn(3)) options.fail_copy = random_.In(0, steps);
    executor::FakeDevice device(options);
    const auto trained = TrainNetwork(step_, plan, device, kSteps);
    ++count_[trained.ok() ? "fake device, finished" : "fake device, failed"];
    const bool faults = options.fail_launch >= 0 || options.fail_copy >= 0;
    if (trained.ok() || (faults && IsInjected(trained.status()))) {
      return absl::OkStatus();
    }
    return Found("fake device", trained.status());
  }

  absl::Status RunOnCpu(const Plan& plan) {
    for (int attempt = random_.In(1, kMostAttempts); attempt >= 0; --attempt) {
      const Fault fault = attempt == 0
                              ? Fault::kNone
                              : static_cast<Fault>(random_.In(
                                    0, static_cast<int>(Fault::kNone)));
      FaultyDevice device(fault, random_.In(0, CallsOf(fault, plan)),
                          random_.Next(), kMostDelayNs);
      const absl::Status status = GoOn(plan, device);
      ++count_[absl::StrCat(kFaultNames[static_cast<size_t>(fault)],
                            status.ok() ? ", finished" : ", failed")];
      if (!status.ok() && !IsInjected(status)) {
        return Found(kFaultNames[static_cast<size_t>(fault)], status);
      }
    }
    if (done_ != kSteps) return Found("the last run did not finish");
    return saved_ == expected_ ? absl::OkStatus() : Found("other bits");
  }

  // About how often an undisturbed run does what fails.
  int64_t CallsOf(Fault fault, const Plan& plan) const {
    int64_t copies = 0;
    for (const planner::Step& step : plan.steps) {
      copies += step.kind == planner::StepKind::kCopy;
    }
    int64_t persistent = 0;
    for (const planner::Value& value : step_.problem.values) {
      persistent += value.persistent;
    }
    switch (fault) {
      case Fault::kWrite:
        return persistent + 2 * kSteps;
      case Fault::kRead:
        return persistent * kSteps;
      case Fault::kLaunch:
        return (static_cast<int64_t>(plan.steps.size()) - copies) * kSteps;
      case Fault::kCopy:
        return copies * kSteps;
      case Fault::kStep:
        return kSteps;
      default:
        return 0;
    }
  }

  // From the last saved state to the end, saving after every step.
  absl::Status GoOn(const Plan& plan, executor::Device& device) {
    LOADLINE_ASSIGN_OR_RETURN(
        const auto program,
        executor::Load(step_.graph, step_.problem, plan, device,
                       {.poison = random_.OneIn(2)}));
    if (done_ > 0) LOADLINE_RETURN_IF_ERROR(RestoreBytes(*program, saved_));
    while (done_ < kSteps) {
      const absl::Status status = RunSteps(*program, done_ + 1, 1);
      if (!status.ok()) {
        const absl::Status again = RunSteps(*program, done_ + 1, 1);
        return absl::IsFailedPrecondition(again)
                   ? status
                   : Found("a step after a failed one", again);
      }
      LOADLINE_ASSIGN_OR_RETURN(saved_, SavedBytes(*program));
      ++done_;
    }
    return absl::OkStatus();
  }

  TestRandom random_;
  std::map<std::string, int64_t>& count_;
  NetworkStep step_;
  Bytes expected_;
  Bytes saved_;
  int done_ = 0;
};

int Main(int argc, char** argv) {
  const auto arguments = campaign::ReadArguments(argc, argv, 100);
  if (!arguments.has_value()) return 2;
  std::map<std::string, int64_t> count;
  const int64_t findings =
      campaign::RunCases(*arguments, "cases", [&](uint64_t seed) {
        return campaign::PrintIfFound(seed, Case(seed, count).Run());
      });
  campaign::PrintCounts(count);
  return findings > 0 ? 1 : 0;
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) { return loadline::Main(argc, argv); }
