// Steps are taken in the order of the list, which follows every wait; an
// in-place pair counts twice while its step runs. Tested in
// tests/planner/solve/peak_worth_test.cc.
#include "planner/solve/peak_worth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace loadline::planner {
namespace {

// A step with half of the peak's bytes counts 1/65,536 of one at the peak.
constexpr double kSteepness = 16;

std::vector<BufferId> BuffersOf(const Step& step) {
  std::vector<BufferId> buffers = step.in;
  buffers.insert(buffers.end(), step.out.begin(), step.out.end());
  for (BufferId id : {step.workspace, step.from, step.to}) {
    if (id != kNoBuffer) buffers.push_back(id);
  }
  return buffers;
}

// The steps that access each device buffer, ascending and without repeats. What
// is there before the first step or after the last one has -1 or the number of
// steps as well.
std::vector<std::vector<int64_t>> Accesses(const Problem& problem,
                                           const Plan& plan) {
  const auto count = static_cast<int64_t>(plan.steps.size());
  std::vector<std::vector<int64_t>> accesses(plan.buffers.size());
  std::vector<bool> written(plan.buffers.size(), false);
  for (int64_t s = 0; s < count; ++s) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    for (BufferId id : step.out) written[Index(id)] = true;
    for (BufferId id : {step.workspace, step.to}) {
      if (id != kNoBuffer) written[Index(id)] = true;
    }
    for (BufferId id : BuffersOf(step)) {
      std::vector<int64_t>& of = accesses[Index(id)];
      if (of.empty() || of.back() != s) of.push_back(s);
    }
  }
  const ProblemIndex index = IndexProblem(problem);
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.space != Space::kDevice) {
      accesses[b].clear();
      continue;
    }
    if (!written[b]) accesses[b].insert(accesses[b].begin(), -1);
    if (buffer.value == kNoValue) continue;
    const size_t v = Index(buffer.value);
    const bool last_version =
        problem.values[v].persistent && index.next_version[v] == kNoValue;
    if (index.is_output[v] || last_version) accesses[b].push_back(count);
  }
  return accesses;
}

}  // namespace

std::vector<double> WorthAtPeak(const Problem& problem, const Plan& plan) {
  const size_t count = plan.steps.size();
  std::vector<double> worth(problem.values.size(), 0);
  const std::vector<std::vector<int64_t>> accesses = Accesses(problem, plan);
  std::vector<int64_t> change(count + 1, 0);
  for (size_t b = 0; b < accesses.size(); ++b) {
    if (accesses[b].empty()) continue;
    const auto last = static_cast<int64_t>(count) - 1;
    const int64_t begin = std::max<int64_t>(accesses[b].front(), 0);
    const int64_t end = std::min(accesses[b].back(), last) + 1;
    change[static_cast<size_t>(begin)] += plan.buffers[b].bytes;
    change[static_cast<size_t>(end)] -= plan.buffers[b].bytes;
  }
  int64_t peak_bytes = 0, live_bytes = 0;
  for (size_t s = 0; s < count; ++s) {
    live_bytes += change[s];
    peak_bytes = std::max(peak_bytes, live_bytes);
  }
  if (peak_bytes == 0) return worth;
  std::vector<double> before(count + 1, 0);  // weights of the steps before one
  live_bytes = 0;
  for (size_t s = 0; s < count; ++s) {
    live_bytes += change[s];
    before[s + 1] = before[s] + std::pow(static_cast<double>(live_bytes) /
                                             static_cast<double>(peak_bytes),
                                         kSteepness);
  }
  for (size_t b = 0; b < accesses.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    // A buffer of fewer bytes is the value encoded already.
    if (buffer.value == kNoValue ||
        buffer.bytes < problem.value(buffer.value).bytes) {
      continue;
    }
    for (size_t a = 1; a < accesses[b].size(); ++a) {
      const auto from = static_cast<size_t>(accesses[b][a - 1] + 1);
      const auto to = static_cast<size_t>(accesses[b][a]);
      worth[Index(buffer.value)] += (before[to] - before[from]) / before[count];
    }
  }
  return worth;
}

}  // namespace loadline::planner
