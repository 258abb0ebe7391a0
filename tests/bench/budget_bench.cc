// Plans every loadline.problem/1 file of a folder, or one file, at many budgets
// from the peak of the given order down to the smallest feasible one: with
// recomputation and copies, and with each alone. Reports where a promise of the
// planner is broken: a larger budget is never slower, and feasible if a smaller
// one is; both techniques together are never worse than each alone; the same
// input gives the same bytes with 1, 2 and 8 threads; with a time limit no plan
// is slower than one found earlier, nor than keeping everything if that fits.
// The exit status is 1 if any promise is broken.
//
//   budget_bench FOLDER|FILE [--budgets=N] [--work=N] [--seed=N]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "planner/solve/solve.h"
#include "tests/bench/problem_files.h"

namespace loadline::planner {
namespace {

constexpr int kTimeLimitsMs[] = {0, 5, 100};

struct Settings {
  int budgets = 20;
  SolveOptions options;
};

// A combination of techniques, and its step time at the next smaller budget.
struct Technique {
  absl::string_view name;
  bool recompute = true, offload = true;
  std::optional<int64_t> last_ns;
};

class Check {
 public:
  Check(std::string name, const Problem& problem, const Settings& settings,
        const Plan& all)
      : name_(std::move(name)),
        problem_(problem),
        settings_(settings),
        all_(all) {}

  // Tries budgets from the smallest to the peak; returns the broken promises.
  int Run(int64_t smallest_bytes) {
    const int64_t most_bytes =
        std::max(all_.predicted.peak_bytes, smallest_bytes);
    for (int i = 0; i < settings_.budgets; ++i) {
      const int64_t steps = std::max(1, settings_.budgets - 1);
      options_ = settings_.options;
      options_.budget_bytes =
          smallest_bytes + (most_bytes - smallest_bytes) * i / steps;
      CheckTechniques();
      CheckTimeLimits();
      std::fflush(stdout);
    }
    return broken_;
  }

 private:
  void Broken(absl::string_view what) {
    ++broken_;
    std::printf("  BROKEN %s at %lld bytes: %s\n", name_.c_str(),
                static_cast<long long>(options_.budget_bytes),
                std::string(what).c_str());
  }

  void CheckTechniques() {
    std::string line;
    std::optional<int64_t> best_alone_ns;
    for (Technique& technique : techniques_) {
      options_.allow_recompute = technique.recompute;
      options_.allow_offload = technique.offload;
      const absl::StatusOr<Plan> plan = Solve(problem_, options_);
      if (!plan.ok()) {
        absl::StrAppend(&line, "  ", technique.name, " none");
        if (technique.last_ns) {
          Broken(absl::StrCat(technique.name, ": a smaller budget is met"));
        }
        if (technique.recompute && technique.offload && best_alone_ns) {
          Broken("both find no plan, one alone does");
        }
        continue;
      }
      const int64_t step_ns = plan->predicted.step_ns;
      absl::StrAppend(&line, "  ", technique.name, " +", Overhead(step_ns));
      if (technique.last_ns && step_ns > *technique.last_ns) {
        Broken(absl::StrCat(technique.name, ": a smaller budget is faster by ",
                            step_ns - *technique.last_ns, " ns"));
      }
      technique.last_ns = step_ns;
      if (!technique.recompute || !technique.offload) {
        best_alone_ns = std::min(step_ns, best_alone_ns.value_or(step_ns));
        continue;
      }
      if (best_alone_ns && step_ns > *best_alone_ns) {
        Broken(absl::StrCat("one means alone is faster by ",
                            step_ns - *best_alone_ns, " ns"));
      }
      for (int threads : {1, 2, 8}) {
        SolveOptions options = options_;
        options.threads = threads;
        const absl::StatusOr<Plan> again = Solve(problem_, options);
        if (!again.ok() ||
            PlanToJson(*plan, problem_) != PlanToJson(*again, problem_)) {
          Broken(absl::StrCat(threads, " threads give other bytes"));
        }
      }
    }
    std::printf("  %5.1f %%%s\n",
                100 * static_cast<double>(options_.budget_bytes) /
                    static_cast<double>(all_.predicted.peak_bytes),
                line.c_str());
  }

  void CheckTimeLimits() {
    for (int limit_ms : kTimeLimitsMs) {
      SolveOptions options = options_;
      options.allow_recompute = options.allow_offload = true;
      options.time_limit = absl::Milliseconds(limit_ms);
      std::optional<int64_t> found_ns;
      if (all_.budget_bytes <= options.budget_bytes) {
        found_ns = all_.predicted.step_ns;
      }
      options.progress = [&](const Progress& progress) {
        found_ns =
            std::min(progress.step_ns, found_ns.value_or(progress.step_ns));
      };
      const absl::StatusOr<Plan> plan = Solve(problem_, options);
      if (!found_ns) continue;
      if (!plan.ok() || plan->predicted.step_ns > *found_ns) {
        Broken(absl::StrCat("a limit of ", limit_ms,
                            " ms loses what was found before"));
      }
    }
  }

  std::string Overhead(int64_t step_ns) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f %%",
                  100 * (static_cast<double>(step_ns) /
                             static_cast<double>(all_.predicted.compute_ns) -
                         1));
    return text;
  }

  const std::string name_;
  const Problem& problem_;
  const Settings& settings_;
  const Plan& all_;
  SolveOptions options_;
  Technique techniques_[3] = {{"recompute", true, false, {}},
                              {"copies", false, true, {}},
                              {"both", true, true, {}}};
  int broken_ = 0;
};

int BenchProblem(const std::string& name, const Problem& problem,
                 const Settings& settings) {
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  const absl::StatusOr<Plan> smallest =
      SolveSmallest(problem, settings.options);
  if (!all.ok() || !smallest.ok()) {
    const absl::Status& status = all.ok() ? smallest.status() : all.status();
    std::printf("%s: %s\n", name.c_str(),
                std::string(status.message()).c_str());
    return 1;
  }
  std::printf("%s: %zu nodes, smallest budget met %.2f %%\n", name.c_str(),
              problem.nodes.size(),
              100 * static_cast<double>(smallest->arena_bytes) /
                  static_cast<double>(all->predicted.peak_bytes));
  const std::clock_t start = std::clock();
  const int broken =
      Check(name, problem, settings, *all).Run(smallest->arena_bytes);
  std::printf("%s: %d broken, %.1f s\n", name.c_str(), broken,
              static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  return broken;
}

int Main(int argc, char** argv) {
  Settings settings;
  settings.options.work_limit = 100'000;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--work=", 0) == 0) {
      settings.options.work_limit = std::atoll(arg.c_str() + 7);
    } else if (arg.rfind("--seed=", 0) == 0) {
      settings.options.seed = std::atoll(arg.c_str() + 7);
    } else if (arg.rfind("--budgets=", 0) == 0) {
      settings.budgets = std::atoi(arg.c_str() + 10);
    } else {
      path = arg;
    }
  }
  if (path.empty()) {
    std::fprintf(stderr,
                 "usage: budget_bench FOLDER|FILE [--budgets=N] [--work=N] "
                 "[--seed=N]\n");
    return 2;
  }
  int broken = 0;
  ForEachProblem(path, [&](const std::string& name, const Problem& problem) {
    broken += BenchProblem(name, problem, settings);
  });
  return broken > 0 ? 1 : 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
