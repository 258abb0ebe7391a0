// The largest batch that trains within a memory size at a cost of at most one
// extra forward pass (Jain et al., Checkmate, MLSys 2020, section 6.4). Bisects
// it for every loadline.problem/1 file of a folder whose name ends in _b and
// its batch.
//
//   batch_bench FOLDER [--bytes=16000000000] [--work=N]
//               [--copies=BYTES_PER_S --unit-ns=X]
//
// Bytes, and with them times, are assumed to grow linearly with the batch, so
// the plan for batch b within B bytes is the file's own within B * batch / b
// bytes, with the same copy rate. `--unit-ns` is the number of nanoseconds in
// the file's unit of time, which copy rates require. Forward nodes are those
// not named *_backward. Weights count only if the file contains them.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "planner/solve/solve.h"
#include "tests/bench/problem_files.h"
#include "tools/pipeline/sweep.h"

namespace loadline::planner {
namespace {

constexpr int64_t kLargestAsked = int64_t{1} << 40;

struct Settings {
  int64_t bytes = 16'000'000'000;
  double copy_bytes_per_s = 0;  // 0: no copies
  double unit_ns = 1;
  SolveOptions options;
};

// The number after the last "_b" of the name; 0 if there is none.
int64_t BatchOf(const std::string& name) {
  const size_t at = name.rfind("_b");
  int64_t batch = 0;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(name.substr(at + 2), &batch) || batch < 0) {
    return 0;
  }
  return batch;
}

int64_t ForwardNs(const Problem& problem) {
  int64_t ns = 0;
  for (const Node& node : problem.nodes) {
    if (!absl::EndsWith(node.name, "_backward")) ns += node.time_ns;
  }
  return ns;
}

class Bench {
 public:
  Bench(const Problem& problem, int64_t batch, const Settings& settings)
      : problem_(problem), batch_(batch), settings_(settings) {
    for (const Node& node : problem.nodes) compute_ns_ += node.time_ns;
    limit_ns_ = compute_ns_ + ForwardNs(problem);
  }

  void Print(const std::string& name) {
    const auto fits = [this](int64_t batch) { return Fits(batch); };
    const tools::Largest found = *tools::FindLargest(1, kLargestAsked, fits);
    const int64_t met = found.size, missed = found.smallest_not;
    std::printf("%s: largest batch %lld", name.c_str(),
                static_cast<long long>(met));
    if (const std::optional<Plan> plan = PlanFor(met)) {
      std::printf(", overhead %.2f %% of at most %.2f %%", Percent(*plan),
                  100.0 * static_cast<double>(limit_ns_ - compute_ns_) /
                      static_cast<double>(compute_ns_));
    }
    if (const std::optional<Plan> plan = PlanFor(missed)) {
      std::printf("; %lld: %.2f %%\n", static_cast<long long>(missed),
                  Percent(*plan));
    } else {
      std::printf("; %lld: no plan, proven for %lld\n",
                  static_cast<long long>(missed),
                  static_cast<long long>(ProvenBatch() + 1));
    }
  }

 private:
  std::optional<Plan> PlanFor(int64_t batch) const {
    if (batch == 0) return std::nullopt;
    SolveOptions options = settings_.options;
    options.budget_bytes = static_cast<int64_t>(
        static_cast<__int128>(settings_.bytes) * batch_ / batch);
    const absl::StatusOr<Plan> plan = Solve(problem_, options);
    if (!plan.ok()) return std::nullopt;
    return *plan;
  }

  // No plan exists for a larger batch, at any overhead.
  int64_t ProvenBatch() const {
    SolveOptions options = settings_.options;
    options.budget_bytes = 0;
    options.work_limit = 0;
    const auto facts = InfeasibilityOf(Solve(problem_, options).status());
    const int64_t bytes = facts ? facts->proven_bound_bytes : 0;
    if (bytes == 0) return 0;
    return static_cast<int64_t>(static_cast<__int128>(settings_.bytes) *
                                batch_ / bytes);
  }

  bool Fits(int64_t batch) const {
    const std::optional<Plan> plan = PlanFor(batch);
    return plan && plan->predicted.step_ns <= limit_ns_;
  }

  double Percent(const Plan& plan) const {
    return 100 * (static_cast<double>(plan.predicted.step_ns) /
                      static_cast<double>(compute_ns_) -
                  1);
  }

  const Problem& problem_;
  const int64_t batch_;
  const Settings& settings_;
  int64_t compute_ns_ = 0;
  int64_t limit_ns_ = 0;
};

void BenchInstance(const std::string& name, Problem problem,
                   const Settings& settings) {
  const int64_t batch = BatchOf(name);
  if (batch == 0) return;
  if (settings.copy_bytes_per_s > 0) {
    Machine machine;
    machine.name = "batch_bench";
    machine.d2h.bytes_per_s = machine.h2d.bytes_per_s =
        settings.copy_bytes_per_s * settings.unit_ns;
    machine.device_bytes = machine.host_bytes = int64_t{1} << 60;
    problem.machine = machine;
  }
  Bench(problem, batch, settings).Print(name);
}

int Main(int argc, char** argv) {
  Settings settings;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto number = [&arg] {
      return std::atof(arg.c_str() + arg.find('=') + 1);
    };
    if (absl::StartsWith(arg, "--bytes=")) {
      settings.bytes = static_cast<int64_t>(number());
    } else if (absl::StartsWith(arg, "--work=")) {
      settings.options.work_limit = static_cast<int64_t>(number());
    } else if (absl::StartsWith(arg, "--copies=")) {
      settings.copy_bytes_per_s = number();
    } else if (absl::StartsWith(arg, "--unit-ns=")) {
      settings.unit_ns = number();
    } else {
      folder = arg;
    }
  }
  if (folder.empty() || settings.unit_ns <= 0) {
    std::fprintf(stderr,
                 "usage: batch_bench FOLDER [--bytes=N] [--work=N] "
                 "[--copies=BYTES_PER_S --unit-ns=X]\n");
    return 2;
  }
  ForEachProblem(folder, [&](const std::string& name, const Problem& problem) {
    BenchInstance(name, problem, settings);
  });
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
