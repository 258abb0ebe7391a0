// Plans every loadline.problem/1 file of a folder at several budgets and
// prints one line each: overhead over pure compute, proven bound, seconds of
// processor time and of wall time, the program's peak memory.
//
//   planner_bench FOLDER [PERCENT...] [--work=N] [--seed=N] [--threads=N]
//                 [--limit_s=N] [--recompute-only] [--copies-only]
//                 [--no-addresses]
//   planner_bench --transformer=LAYERS [PERCENT...] [the same]
//   planner_bench --transformer=LAYERS --write=FILE
//
// The second form plans a generated GPT step (about 77 nodes a layer) instead;
// the third only writes it, as loadline.problem/1.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/solve/solve.h"
#include "tests/bench/problem_files.h"
#include "tests/planner/support/transformer_problem.h"
#include "tools/pipeline/files.h"

namespace loadline::planner {
namespace {

// Peak memory of this process so far.
double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Settings {
  std::vector<double> percents;
  SolveOptions options;
  bool addresses = true;  // false: plan live bytes only, without addresses
  std::string write_path;
};

void BenchProblem(const std::string& name, Problem problem,
                  const Settings& settings) {
  problem.addresses = problem.addresses && settings.addresses;
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  if (!all.ok()) {
    std::printf("%-28s %s\n", name.c_str(),
                std::string(all.status().message()).c_str());
    return;
  }
  const double compute_ns = static_cast<double>(all->predicted.compute_ns);
  std::printf("%s: %zu nodes, peak %.3f GB, compute %.2f ms, arena +%.2f %%\n",
              name.c_str(), problem.nodes.size(),
              static_cast<double>(all->predicted.peak_bytes) / 1e9,
              compute_ns / 1e6,
              100.0 * (static_cast<double>(all->budget_bytes) /
                           static_cast<double>(all->predicted.peak_bytes) -
                       1));
  for (double percent : settings.percents) {
    SolveOptions options = settings.options;
    options.budget_bytes = static_cast<int64_t>(
        percent / 100 * static_cast<double>(all->predicted.peak_bytes));
    const absl::Time begin = absl::Now();
    const std::clock_t start = std::clock();
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    const double wall_s = absl::ToDoubleSeconds(absl::Now() - begin);
    const double seconds =
        static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!plan.ok()) {
      const auto facts = InfeasibilityOf(plan.status());
      std::printf(
          "  %5.1f %%  no plan; met %.1f %%, bound %.1f %%  %.2f s\n", percent,
          facts ? 100.0 * static_cast<double>(facts->smallest_met_bytes) /
                      static_cast<double>(all->predicted.peak_bytes)
                : 0.0,
          facts ? 100.0 * static_cast<double>(facts->proven_bound_bytes) /
                      static_cast<double>(all->predicted.peak_bytes)
                : 0.0,
          seconds);
      if (!facts) {
        std::printf("    %s\n", std::string(plan.status().message()).c_str());
      }
      continue;
    }
    std::printf(
        "  %5.1f %%  +%.4f %% (bound +%.4f %%), rerun %.4f %%, stall %.4f %%, "
        "%.2f s of processors in %.2f s, %.0f MB\n",
        percent,
        100 * (static_cast<double>(plan->predicted.step_ns) / compute_ns - 1),
        100 * (static_cast<double>(plan->bounds.step_ns) / compute_ns - 1),
        100 * static_cast<double>(plan->predicted.recompute_ns) / compute_ns,
        100 * static_cast<double>(plan->predicted.stall_ns) / compute_ns,
        seconds, wall_s, PeakMegabytes());
    std::fflush(stdout);
  }
}

int Write(const std::string& path, const Problem& problem) {
  const absl::Status status =
      tools::WriteFile(path, ProblemToJson(problem) + "\n");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  Settings settings;
  std::string folder;
  std::vector<int> layers;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--work=", 0) == 0) {
      settings.options.work_limit = std::atoll(arg.c_str() + 7);
    } else if (arg.rfind("--seed=", 0) == 0) {
      settings.options.seed =
          static_cast<uint64_t>(std::atoll(arg.c_str() + 7));
    } else if (arg.rfind("--threads=", 0) == 0) {
      settings.options.threads = std::atoi(arg.c_str() + 10);
    } else if (arg.rfind("--limit_s=", 0) == 0) {
      settings.options.time_limit = absl::Seconds(std::atof(arg.c_str() + 10));
    } else if (arg.rfind("--transformer=", 0) == 0) {
      layers.push_back(std::atoi(arg.c_str() + 14));
    } else if (arg.rfind("--write=", 0) == 0) {
      settings.write_path = arg.substr(8);
    } else if (arg == "--recompute-only") {
      settings.options.allow_offload = false;
    } else if (arg == "--no-addresses") {
      settings.addresses = false;
    } else if (arg == "--copies-only") {
      settings.options.allow_recompute = false;
    } else if (folder.empty() && layers.empty()) {
      folder = arg;
    } else {
      settings.percents.push_back(std::atof(arg.c_str()));
    }
  }
  if (folder.empty() && layers.empty()) {
    std::fprintf(stderr, "usage: planner_bench FOLDER [PERCENT...]\n");
    return 2;
  }
  if (settings.percents.empty()) settings.percents = {90, 80, 60, 40, 20};
  for (int count : layers) {
    TransformerShape shape;
    shape.layers = count;
    const Problem problem = TransformerProblem(shape);
    if (!settings.write_path.empty()) {
      return Write(settings.write_path, problem);
    }
    BenchProblem(absl::StrCat("transformer", count), problem, settings);
  }
  if (folder.empty()) return 0;
  ForEachProblem(folder, [&](const std::string& name, const Problem& problem) {
    BenchProblem(name, problem, settings);
  });
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
