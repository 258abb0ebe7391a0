// `loadline sensitivity`: what the model loses with the channels of each group,
// and a recipe drafted from that. Tested by
// tests/end_to_end/sensitivity_test.cc.
#include "tools/pipeline/sensitivity.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "executor/train/data.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/number_checks.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/load_evaluation.h"
#include "tools/pipeline/output_paths.h"

namespace loadline::tools {
namespace {

struct SensitivityVerbFlags {
  ModelFlags model;
  LossFlags loss;
  PlanFlags plan;
  std::vector<double> sparsities = {0.25, 0.5, 0.75};
  double most = 0.01;
  std::string out;
  bool json = false;
};

// Of an evaluation: its accuracy in percent, or its loss.
std::string Text(const executor::Evaluation& evaluation) {
  return evaluation.accuracy.has_value()
             ? fmt::format("{:.2f} %", 100 * *evaluation.accuracy)
             : fmt::format("{:.4f}", evaluation.loss);
}

nlohmann::ordered_json ToJson(const executor::Evaluation& evaluation) {
  nlohmann::ordered_json out = {{"loss", evaluation.loss}};
  if (evaluation.accuracy.has_value()) out["accuracy"] = *evaluation.accuracy;
  return out;
}

nlohmann::ordered_json ToJson(const Sensitivity& all, double most) {
  nlohmann::ordered_json out = {{"format", "loadline.sensitivity/1"},
                                {"examples", all.whole.examples},
                                {"whole", ToJson(all.whole)},
                                {"groups", nlohmann::ordered_json::array()}};
  for (const GroupSensitivity& group : all.groups) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (const SensitivityPoint& point : group.points) {
      nlohmann::ordered_json one = {{"sparsity", point.sparsity}};
      one.update(ToJson(point.evaluation));
      points.push_back(std::move(one));
    }
    out["groups"].push_back(
        {{"group", group.group},
         {"width", group.width},
         {"points", std::move(points)},
         {"safe_sparsity", SafeSparsity(all, group, most)}});
  }
  return out;
}

void PrintTable(const Sensitivity& all, const std::vector<double>& sparsities,
                double most) {
  Print("{} examples; with all channels {}\n\n", all.whole.examples,
        Text(all.whole));
  Print("{:<32}{:>7}", "group", "width");
  for (double sparsity : sparsities) {
    Print("{:>10}", fmt::format("-{:.4g} %", 100 * sparsity));
  }
  Print("{:>8}\n", "safe");
  for (const GroupSensitivity& group : all.groups) {
    Print("{:<32}{:>7}", group.group, group.width);
    for (const SensitivityPoint& point : group.points) {
      Print("{:>10}", Text(point.evaluation));
    }
    Print("{:>8}\n",
          fmt::format("{:.4g} %", 100 * SafeSparsity(all, group, most)));
  }
}

absl::Status RunSensitivity(const SensitivityVerbFlags& flags) {
  if (flags.loss.data.empty()) {
    return NeedsData("sensitivity");
  }
  StepFlags step;
  step.model = flags.model;
  step.loss = flags.loss;
  step.plan = flags.plan;
  LOADLINE_RETURN_IF_ERROR(
      CheckOutputPaths(InputPaths(step),
                       {{"-o", flags.out}, {"--json", flags.json ? "-" : ""}}));
  const std::atomic<bool>* stop = CatchInterrupts();
  LOADLINE_ASSIGN_OR_RETURN(
      auto loaded, LoadEvaluation(flags.model, flags.loss, flags.plan));
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                            LoadDataFor(flags.loss, loaded->graph));
  std::vector<double> sparsities = flags.sparsities;
  std::sort(sparsities.begin(), sparsities.end());
  LOADLINE_ASSIGN_OR_RETURN(
      const Sensitivity all,
      MeasureSensitivity(*loaded, data, passes::PruneCriterion::kL2, sparsities,
                         stop));
  const std::string draft = DraftRecipe(all, flags.most);
  if (!flags.out.empty() && draft.empty()) {
    spdlog::warn(
        "no group loses channels within --most {:.4g} %: {} is not "
        "written",
        100 * flags.most, flags.out);
  } else if (!flags.out.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(flags.out, draft));
  }
  if (flags.json) {
    Print("{}\n", JsonText(ToJson(all, flags.most)));
  } else if (flags.out != "-") {
    PrintTable(all, sparsities, flags.most);
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddSensitivity(CLI::App* app) {
  auto flags = std::make_shared<SensitivityVerbFlags>();
  AddModelFlags(app, &flags->model);
  AddLossFlags(app, &flags->loss);
  AddPlanFlags(app, &flags->plan);
  app->add_option("--sparsities", flags->sparsities,
                  "Shares of a group's channels (default 0.25,0.5,0.75)")
      ->delimiter(',')
      ->check(CheckShare)
      ->check(CLI::Range(0.0, 0.999))
      ->take_all();
  app->add_option("--most", flags->most,
                  "Fall of accuracy that is safe (default 0.01)")
      ->check(CheckShare)
      ->take_last();
  AddOutputFlag(app, &flags->out, "Draft of a recipe, .yaml; - is stdout");
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunSensitivity(*flags); };
}

}  // namespace loadline::tools
