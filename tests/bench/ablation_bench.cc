// What every stage of the search is worth: plans each problem with each stage
// off, and with each pair of stages off, and prints a Markdown table.
//
//   ablation_bench FOLDER_OR_FILE... [--percents=75,50,35] [--seeds=0,1]
//       [--work=N] [--stages=NAME,NAME] [--pairs]
//
// A row is a stage, or a pair; a column is a problem. A cell is the loss
// without the stage, in points: percent of the step in which every node runs
// once. It is the mean over the seeds, at the budget (percent of the peak when
// everything is kept) where it is largest; below zero, the stage costs more
// than it finds. `none`: without the stage some budget has no plan; `-`: the
// problem has no plan at any of the budgets with all stages either. The last
// column is the largest loss of the row and its budget. A stage is worth
// keeping if that is at least 0.1.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/solve/solve.h"
#include "tests/bench/problem_files.h"

namespace loadline::planner {
namespace {

// A stage and its switch.
struct Stage {
  const char* name;
  bool& (*enabled)(SolveOptions& options);
};

// One line for each switch of SearchTuning, and the retries of the effort.
std::vector<Stage> AllStages() {
  using Options = SolveOptions;
  return {
      {"orders.early_updates",
       [](Options& o) -> bool& { return o.tuning.orders.early_updates; }},
      {"orders.fewest_bytes",
       [](Options& o) -> bool& { return o.tuning.orders.fewest_bytes; }},
      {"reduce_pressure",
       [](Options& o) -> bool& { return o.tuning.reduce_pressure.enabled; }},
      {"peak_cut_seed",
       [](Options& o) -> bool& { return o.tuning.peak_cut_seed.enabled; }},
      {"persistent_placement",
       [](Options& o) -> bool& {
         return o.tuning.persistent_placement.enabled;
       }},
      {"window", [](Options& o) -> bool& { return o.tuning.window.enabled; }},
      {"clean_up",
       [](Options& o) -> bool& { return o.tuning.clean_up.enabled; }},
      {"clean_up.faster_variants",
       [](Options& o) -> bool& { return o.tuning.clean_up.faster_variants; }},
      {"drop_redundant_transfers",
       [](Options& o) -> bool& {
         return o.tuning.drop_redundant_transfers.enabled;
       }},
      {"bisection.search_between_points",
       [](Options& o) -> bool& {
         return o.tuning.bisection.search_between_points;
       }},
      {"bisection.orders_mode",
       [](Options& o) -> bool& { return o.tuning.bisection.orders_mode; }},
      {"bisection.recompute_mode",
       [](Options& o) -> bool& { return o.tuning.bisection.recompute_mode; }},
      {"bisection.copies_mode",
       [](Options& o) -> bool& { return o.tuning.bisection.copies_mode; }},
      {"bisection.apart_lanes_mode",
       [](Options& o) -> bool& { return o.tuning.bisection.apart_lanes_mode; }},
      {"bisection.layout_retries",
       [](Options& o) -> bool& { return o.tuning.bisection.layout_retries; }},
      {"layers", [](Options& o) -> bool& { return o.tuning.layers.enabled; }},
      {"layers.schedule_copies",
       [](Options& o) -> bool& { return o.tuning.layers.schedule_copies; }},
      {"layers.improve_all",
       [](Options& o) -> bool& { return o.tuning.layers.improve_all; }},
      {"point.lane_price_descents",
       [](Options& o) -> bool& { return o.tuning.point.lane_price_descents; }},
      {"point.start_descents",
       [](Options& o) -> bool& { return o.tuning.point.start_descents; }},
      {"point.stop_at_bound",
       [](Options& o) -> bool& { return o.tuning.point.stop_at_bound; }},
      {"point.cold_anneal",
       [](Options& o) -> bool& { return o.tuning.point.cold_anneal; }},
      {"point.warm_anneal",
       [](Options& o) -> bool& { return o.tuning.point.warm_anneal; }},
      {"point.reheat",
       [](Options& o) -> bool& { return o.tuning.point.reheat; }},
      {"point.finish_greedily",
       [](Options& o) -> bool& { return o.tuning.point.finish_greedily; }},
      {"point.repair",
       [](Options& o) -> bool& { return o.tuning.point.repair; }},
      {"effort.retries", [](Options& o) -> bool& { return o.allow_retries; }},
  };
}

// The stages that are off together.
using Row = std::vector<Stage>;

std::string NameOf(const Row& row) {
  return absl::StrJoin(row, " + ", [](std::string* out, const Stage& stage) {
    absl::StrAppend(out, stage.name);
  });
}

struct Settings {
  std::vector<std::string> paths;
  std::vector<double> percents = {75, 50, 35};
  std::vector<uint64_t> seeds = {0, 1};
  std::vector<std::string> stages;  // empty: all
  bool pairs = false;
  SolveOptions options;
};

// Objectives of one problem by budget and seed; none: no plan.
using Outcomes = std::vector<std::vector<std::optional<double>>>;

struct Cell {
  bool measured = false;  // some budget has plans with all stages
  bool none = false;      // and one of those has none without
  double points = -std::numeric_limits<double>::infinity();
  double percent = 0;  // where
};

// One problem, planned with and without stages.
class Instance {
 public:
  Instance(std::string name, const Problem& problem, const Settings& settings)
      : name_(std::move(name)), problem_(problem), settings_(settings) {
    const absl::StatusOr<Plan> keep = KeepEverything(problem_);
    if (!keep.ok()) return;
    once_ns_ = static_cast<double>(keep->predicted.compute_ns);
    peak_bytes_ = keep->predicted.peak_bytes;
    baseline_ = Plans(settings.options);
  }

  const std::string& name() const { return name_; }

  Cell Without(const Row& row) const {
    SolveOptions options = settings_.options;
    for (const Stage& stage : row) stage.enabled(options) = false;
    return Compare(Plans(options));
  }

 private:
  Outcomes Plans(SolveOptions options) const {
    Outcomes outcomes(settings_.percents.size());
    if (peak_bytes_ == 0) return outcomes;
    for (size_t b = 0; b < outcomes.size(); ++b) {
      options.budget_bytes = static_cast<int64_t>(
          settings_.percents[b] / 100 * static_cast<double>(peak_bytes_));
      for (uint64_t seed : settings_.seeds) {
        options.seed = seed;
        const absl::StatusOr<Plan> plan = Solve(problem_, options);
        outcomes[b].emplace_back();
        if (plan.ok()) {
          outcomes[b].back() = static_cast<double>(plan->predicted.step_ns);
        }
      }
    }
    return outcomes;
  }

  Cell Compare(const Outcomes& without) const {
    Cell cell;
    for (size_t b = 0; b < baseline_.size(); ++b) {
      double loss_ns = 0;
      int compared = 0;
      for (size_t s = 0; s < baseline_[b].size(); ++s) {
        if (!baseline_[b][s]) continue;
        cell.measured = true;
        if (!without[b][s]) {
          cell.none = true;
          continue;
        }
        loss_ns += *without[b][s] - *baseline_[b][s];
        ++compared;
      }
      if (compared == 0) continue;
      const double points = 100 * loss_ns / compared / once_ns_;
      if (points <= cell.points) continue;
      cell.points = points;
      cell.percent = settings_.percents[b];
    }
    return cell;
  }

  const std::string name_;
  const Problem problem_;
  const Settings& settings_;
  double once_ns_ = 1;
  int64_t peak_bytes_ = 0;
  Outcomes baseline_;
};

std::string TextOf(const Cell& cell) {
  if (!cell.measured) return "-";
  if (cell.none) return "none";
  return absl::StrFormat("%.2f", cell.points);
}

void PrintRow(const Row& row, const std::vector<Instance>& instances) {
  std::string line = absl::StrCat("| ", NameOf(row), " |");
  double largest = -std::numeric_limits<double>::infinity();
  std::string where = "-";
  for (const Instance& instance : instances) {
    const Cell cell = instance.Without(row);
    absl::StrAppend(&line, " ", TextOf(cell), " |");
    if (!cell.measured || (!cell.none && cell.points <= largest)) continue;
    largest = cell.none ? std::numeric_limits<double>::infinity() : cell.points;
    where = cell.none ? absl::StrCat("no plan: ", instance.name())
                      : absl::StrFormat("%.2f: %s at %g %%", cell.points,
                                        instance.name(), cell.percent);
  }
  std::printf("%s %s |\n", line.c_str(), where.c_str());
  std::fflush(stdout);
}

std::vector<Row> RowsOf(const Settings& settings) {
  std::vector<Stage> stages;
  for (const Stage& stage : AllStages()) {
    const auto& wanted = settings.stages;
    if (wanted.empty() ||
        std::find(wanted.begin(), wanted.end(), stage.name) != wanted.end()) {
      stages.push_back(stage);
    }
  }
  std::vector<Row> rows;
  for (const Stage& stage : stages) rows.push_back({stage});
  if (!settings.pairs) return rows;
  for (size_t a = 0; a < stages.size(); ++a) {
    for (size_t b = a + 1; b < stages.size(); ++b) {
      rows.push_back({stages[a], stages[b]});
    }
  }
  return rows;
}

void PrintTable(const Settings& settings) {
  std::vector<Instance> instances;
  for (const std::string& path : settings.paths) {
    ForEachProblem(path, [&](const std::string& name, const Problem& problem) {
      instances.emplace_back(name, problem, settings);
    });
  }
  std::string head = "| without |", rule = "|---|";
  for (const Instance& instance : instances) {
    absl::StrAppend(&head, " ", instance.name(), " |");
    absl::StrAppend(&rule, "---:|");
  }
  std::printf("%s largest loss |\n%s---|\n", head.c_str(), rule.c_str());
  for (const Row& row : RowsOf(settings)) PrintRow(row, instances);
}

std::optional<Settings> ReadArguments(int argc, char** argv) {
  Settings settings;
  settings.options.bound_work_limit = 0;  // only the plans are compared
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> flag =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const std::vector<std::string> list = absl::StrSplit(flag.second, ',');
    if (flag.first == "--percents") {
      settings.percents.clear();
      for (const auto& p : list) {
        settings.percents.push_back(std::atof(p.c_str()));
      }
    } else if (flag.first == "--seeds") {
      settings.seeds.clear();
      for (const auto& s : list) {
        settings.seeds.push_back(std::strtoull(s.c_str(), nullptr, 10));
      }
    } else if (flag.first == "--work") {
      settings.options.work_limit = std::atoll(flag.second.c_str());
    } else if (flag.first == "--stages") {
      settings.stages = list;
    } else if (flag.first == "--pairs") {
      settings.pairs = true;
    } else if (flag.first.rfind("--", 0) == 0) {
      return std::nullopt;
    } else {
      settings.paths.push_back(flag.first);
    }
  }
  if (settings.paths.empty()) return std::nullopt;
  return settings;
}

int Main(int argc, char** argv) {
  const std::optional<Settings> settings = ReadArguments(argc, argv);
  if (!settings) {
    std::fprintf(stderr,
                 "usage: ablation_bench FOLDER_OR_FILE... [--percents=75,50] "
                 "[--seeds=0,1] [--work=N] [--stages=NAME,NAME] [--pairs]\n");
    return 2;
  }
  PrintTable(*settings);
  return 0;
}

}  // namespace
}  // namespace loadline::planner

int main(int argc, char** argv) { return loadline::planner::Main(argc, argv); }
