// `loadline verify`: verifies plan files from any source. Tested by
// tests/end_to_end/bad_input_test.cc.
#include "planner/verify/verify.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_files.h"

namespace loadline::tools {
namespace {

struct VerifyVerbFlags {
  std::string problem;
  std::string plan;
  bool json = false;
};

absl::Status RunVerify(const VerifyVerbFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      ReadProblemFile(flags.problem,
                      "the problem that it is for comes first, then the plan"));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan plan,
                            ReadPlanFile(flags.plan, problem));
  const absl::Status verdict = planner::Verify(problem, plan);
  if (flags.json) {
    nlohmann::ordered_json out;
    out["format"] = "loadline.verify/1";
    out["valid"] = verdict.ok();
    out["error"] = std::string(verdict.message());
    out["budget_bytes"] = plan.budget_bytes;
    out["arena_bytes"] = plan.arena_bytes;
    out["predicted_step_ns"] = plan.predicted.step_ns;
    out["bounds_certified"] = verdict.ok() && plan.certificate.has_value();
    Print("{}\n", JsonText(out));
  } else if (verdict.ok()) {
    Print("valid: {} buffers, {} steps, arena {} of {}, step {}\n",
          FormatCount(static_cast<int64_t>(plan.buffers.size())),
          FormatCount(static_cast<int64_t>(plan.steps.size())),
          FormatBytes(plan.arena_bytes), FormatBytes(plan.budget_bytes),
          FormatNs(plan.predicted.step_ns));
    Print("bounds {}: peak >= {}, step >= {}\n",
          plan.certificate ? "certified" : "not certified, an estimate",
          FormatBytes(plan.bounds.peak_bytes), FormatNs(plan.bounds.step_ns));
  }
  return NamedVerdict(flags.plan, verdict);
}

}  // namespace

VerbBody AddVerify(CLI::App* app) {
  auto flags = std::make_shared<VerifyVerbFlags>();
  app->add_option("problem", flags->problem, "Problem file")->required();
  app->add_option("plan", flags->plan, "Plan file")->required();
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunVerify(*flags); };
}

}  // namespace loadline::tools
