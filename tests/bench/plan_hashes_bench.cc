// Prints a hash of every plan for a folder of problems, to compare two versions
// of the planner byte for byte: run it before and after a change that must not
// change plans, and compare the outputs.
//
//   plan_hashes_bench FOLDER_OR_FILE [BUDGET...] [--work=N] [--seed=N]
//
// A BUDGET is a percentage of the peak with everything kept, or `smallest`;
// default: 100 75 50 35 smallest. One line for each plan: problem, budget,
// SHA-256 of the plan's JSON (16 digits), step and arena.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "planner/base/sha256.h"
#include "planner/bound/bound.h"
#include "planner/solve/solve.h"
#include "tests/bench/problem_files.h"

namespace loadline::planner {
namespace {

absl::StatusOr<Plan> SolveAt(const Problem& problem, const Plan& keep,
                             const std::string& budget, SolveOptions options) {
  if (budget == "smallest") return SolveSmallest(problem, options);
  options.budget_bytes =
      static_cast<int64_t>(std::atof(budget.c_str()) / 100 *
                           static_cast<double>(keep.predicted.peak_bytes));
  return Solve(problem, options);
}

void PrintHashes(const std::string& name, const Problem& problem,
                 const std::vector<std::string>& budgets,
                 const SolveOptions& options) {
  const absl::StatusOr<Plan> keep = KeepEverything(problem);
  for (const std::string& budget : budgets) {
    const absl::StatusOr<Plan> plan =
        keep.ok() ? SolveAt(problem, *keep, budget, options) : keep;
    if (plan.ok()) {
      std::printf("%-24s %8s %s step %lld ns, arena %lld B\n", name.c_str(),
                  budget.c_str(),
                  Sha256Hex(PlanToJson(*plan, problem)).substr(0, 16).c_str(),
                  static_cast<long long>(plan->predicted.step_ns),
                  static_cast<long long>(plan->arena_bytes));
    } else {
      const std::string message(plan.status().message());
      std::printf("%-24s %8s %s no plan\n", name.c_str(), budget.c_str(),
                  Sha256Hex(message).substr(0, 16).c_str());
    }
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  SolveOptions options;
  // Whatever the work, so that hashes of short searches show the full bounds.
  options.bound_work_limit = StepBoundOptions().work_limit;
  std::string folder;
  std::vector<std::string> budgets;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--work=", 0) == 0) {
      options.work_limit = std::atoll(arg.c_str() + 7);
    } else if (arg.rfind("--seed=", 0) == 0) {
      options.seed = static_cast<uint64_t>(std::atoll(arg.c_str() + 7));
    } else if (folder.empty()) {
      folder = arg;
    } else {
      budgets.push_back(arg);
    }
  }
  if (folder.empty()) {
    std::fprintf(stderr,
                 "usage: plan_hashes_bench FOLDER_OR_FILE [BUDGET...] "
                 "[--work=N] [--seed=N]\n");
    return 2;
  }
  if (budgets.empty()) budgets = {"100", "75", "50", "35", "smallest"};
  ForEachProblem(folder, [&](const std::string& name, const Problem& problem) {
    PrintHashes(name, problem, budgets, options);
  });
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
