// Prints the proven bounds of every loadline.problem/1 file of a folder, or of
// one file: the least peak of any plan, and for each budget the least overhead
// over pure compute, the cuts that prove it, the work and the processor time. A
// budget is ceil(percent of the peak of the given order).
//
//   bound_bench FOLDER|FILE [PERCENT...] [--work=N] [--no-recompute]
//               [--no-copies]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "tests/bench/problem_files.h"

namespace loadline::planner {
namespace {

struct Settings {
  std::vector<double> percents;
  bool recompute = true;
  bool copies = true;
  StepBoundOptions options;
};

double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void BenchProblem(const std::string& name, const Problem& problem,
                  const Settings& settings) {
  const SearchModel model =
      MakeSearchModel(problem, settings.recompute, settings.copies);
  const double peak_bytes = static_cast<double>(
      FindLifetimes(model, GivenOrder(model)).raw_peak_bytes);
  const PeakBound peak = BoundPeak(model);
  std::printf("%s: %zu nodes, peak %.0f, no plan below %.2f %% of it\n",
              name.c_str(), problem.nodes.size(), peak_bytes,
              100.0 * static_cast<double>(peak.bytes) / peak_bytes);
  for (double percent : settings.percents) {
    StepBoundOptions options = settings.options;
    options.budget_bytes =
        static_cast<int64_t>(std::ceil(percent / 100 * peak_bytes));
    const double start = Seconds();
    const StepBound bound = BoundStepAt(model, options);
    std::printf("  %5.1f %%  ", percent);
    if (bound.no_plan) {
      std::printf("no plan     ");
    } else {
      std::printf("+%8.4f %%  ",
                  100.0 * (static_cast<double>(bound.step_ns) /
                               static_cast<double>(model.compute_ns) -
                           1));
    }
    std::printf("%7lld work  %6.2f s  cuts:",
                static_cast<long long>(bound.work), Seconds() - start);
    for (size_t i = 0; i < bound.cuts.size() && i < 6; ++i) {
      std::printf(" %s", problem.nodes[bound.cuts[i]].name.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  for (int i = 2; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--work=", 0) == 0) {
      settings.options.work_limit = std::atoll(arg.c_str() + 7);
    } else if (arg == "--no-recompute") {
      settings.recompute = false;
    } else if (arg == "--no-copies") {
      settings.copies = false;
    } else {
      settings.percents.push_back(std::atof(arg.c_str()));
    }
  }
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: bound_bench FOLDER|FILE [PERCENT...] [--work=N] "
                 "[--no-recompute] [--no-copies]\n");
    return 2;
  }
  if (settings.percents.empty()) settings.percents = {90, 80, 70, 50, 35};
  ForEachProblem(argv[1], [&](const std::string& name, const Problem& problem) {
    BenchProblem(name, problem, settings);
  });
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
