// `loadline eval`: loss and accuracy of a model over a whole data set. Tested
// by tests/end_to_end.
#include <atomic>
#include <cmath>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "executor/train/evaluate.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/pipeline/evaluation.h"
#include "tools/pipeline/load_data.h"

namespace loadline::tools {
namespace {

struct EvalVerbFlags {
  EvaluationFlags evaluation;
  bool json = false;
};

absl::Status RunEval(const EvalVerbFlags& flags) {
  if (flags.evaluation.loss.data.empty()) {
    return NeedsData("eval");
  }
  const std::atomic<bool>* stop = CatchInterrupts();
  LOADLINE_ASSIGN_OR_RETURN(const auto evaluation,
                            EvaluationPlan::Make(flags.evaluation));
  LOADLINE_ASSIGN_OR_RETURN(const executor::Evaluation result,
                            evaluation->Run(/*state=*/nullptr, stop));
  if (!std::isfinite(result.loss)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss is ", std::isnan(result.loss) ? "NaN" : "infinite", " over ",
        result.examples,
        " examples: look for such numbers in the data and in the weights"));
  }
  if (flags.json) {
    nlohmann::ordered_json out;
    out["format"] = "loadline.eval/1";
    out["examples"] = result.examples;
    out["loss"] = result.loss;
    if (result.sum) out["reduction"] = "sum";
    if (result.accuracy.has_value()) out["accuracy"] = *result.accuracy;
    out["arena_bytes"] = evaluation->arena_bytes();
    Print("{}\n", JsonText(out));
    return absl::OkStatus();
  }
  Print("{} examples, loss {:.6f}", FormatCount(result.examples), result.loss);
  if (result.sum) Print(" (a sum over the examples)");
  if (result.accuracy.has_value()) {
    Print(", accuracy {:.2f} %", 100 * *result.accuracy);
  }
  Print("\n");
  return absl::OkStatus();
}

}  // namespace

VerbBody AddEval(CLI::App* app) {
  auto flags = std::make_shared<EvalVerbFlags>();
  AddModelFlags(app, &flags->evaluation.model);
  AddLossFlags(app, &flags->evaluation.loss);
  AddPlanFlags(app, &flags->evaluation.plan);
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunEval(*flags); };
}

}  // namespace loadline::tools
