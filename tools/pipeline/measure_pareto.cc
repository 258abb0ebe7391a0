// A machine drifts: other load and clock rates change from minute to minute by
// more than plans differ. So operator times and steps are measured alternately
// in short rounds, and drift affects both equally. Tested by
// tests/tools/pipeline/measure_pareto_test.cc and
// tests/end_to_end/sweep_test.cc.
#include "tools/pipeline/measure_pareto.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "planner/base/check.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "planner/solve/take_faster.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/measure_plan.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/sweep.h"

namespace loadline::tools {
namespace {

constexpr int64_t kMostRounds = 9;
constexpr int64_t kStepsOfARound = 4;  // at least, if there are several rounds
constexpr int64_t kPricingNs = 300'000'000;

// Predicts the same plans with measured times.
absl::Status PriceAnew(const StepFlags& flags, planner::Machine machine,
                       PlannedStep* step, std::vector<ParetoPoint>* points) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
  LOADLINE_RETURN_IF_ERROR(PoseAgain(flags, std::move(machine), *device, step));
  const planner::SolveOptions permitted = PermittedBy(flags.plan);
  for (size_t i = 0; i < points->size(); ++i) {
    ParetoPoint& point = (*points)[i];
    LOADLINE_ASSIGN_OR_RETURN(
        point.plan,
        planner::Reprice(step->problem, std::move(point.plan), permitted));
    if (i == 0) continue;
    const ParetoPoint& smaller = (*points)[i - 1];
    if (planner::TakeFaster(smaller.plan, &point.plan)) {
      point.measured = smaller.measured;
    }
  }
  return absl::OkStatus();
}

}  // namespace

planner::Machine MiddleOf(const std::vector<planner::Machine>& rounds) {
  LOADLINE_CHECK(!rounds.empty());
  const auto middle = [&](const auto& of) {
    std::vector<int64_t> all;
    all.reserve(rounds.size());
    for (const planner::Machine& round : rounds) all.push_back(of(round));
    return planner::MiddleMeanNs(std::move(all));
  };
  // Times are averaged; rates are inverse times.
  const auto middle_link = [&](planner::Link planner::Machine::*field) {
    constexpr double kBytes = 1e12;
    planner::Link link = rounds[0].*field;
    link.latency_ns =
        middle([&](const auto& round) { return (round.*field).latency_ns; });
    if (!rounds[0].CanCopy()) return link;
    link.bytes_per_s = kBytes /
                       static_cast<double>(middle([&](const auto& round) {
                         const double rate = (round.*field).bytes_per_s;
                         return static_cast<int64_t>(kBytes / rate * 1e9);
                       })) *
                       1e9;
    return link;
  };
  planner::Machine machine = rounds[0];
  for (auto& [key, ns] : machine.ops) {
    ns = middle([&key = key](const auto& round) { return round.ops.at(key); });
  }
  machine.d2h = middle_link(&planner::Machine::d2h);
  machine.h2d = middle_link(&planner::Machine::h2d);
  if (machine.copy_overhead_ns > 0) {
    machine.copy_overhead_ns =
        middle([](const auto& round) { return round.copy_overhead_ns; });
  }
  return machine;
}

absl::Status MeasurePareto(const StepFlags& flags, int64_t steps,
                           PlannedStep* step, std::vector<ParetoPoint>* points,
                           const std::atomic<bool>* stop) {
  if (steps == 0) return absl::OkStatus();
  const int64_t rounds =
      std::clamp<int64_t>(steps / kStepsOfARound, 1, kMostRounds);
  std::vector<planner::Machine> machines;
  std::vector<std::vector<Measured>> measured(points->size());
  for (int64_t round = 0; round < rounds; ++round) {
    LOADLINE_ASSIGN_OR_RETURN(
        planner::Machine machine,
        MeasureNow(flags.plan.device, *step, kPricingNs, stop));
    machines.push_back(std::move(machine));
    // All rounds together run as many steps as requested.
    const int64_t share = steps * (round + 1) / rounds - steps * round / rounds;
    for (size_t i = 0; i < points->size(); ++i) {
      step->plan = (*points)[i].plan;
      LOADLINE_ASSIGN_OR_RETURN(Measured one,
                                Measure(*step, flags, share, stop));
      measured[i].push_back(std::move(one));
    }
    spdlog::info("measured round {} of {}", round + 1, rounds);
  }
  for (size_t i = 0; i < points->size(); ++i) {
    (*points)[i].measured = {Together(std::move(measured[i]))};
  }
  return PriceAnew(flags, MiddleOf(machines), step, points);
}

}  // namespace loadline::tools
