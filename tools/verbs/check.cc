// `loadline check`: is the model supported, and does it train as exported? The
// exit code is the one that `run` would end with. Tested by
// tests/tools/report/model_check_test.cc.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/device.h"
#include "tools/report/model_check.h"

namespace loadline::tools {
namespace {

struct CheckVerbFlags {
  StepFlags step;
  bool gradients = false;
  bool json = false;
};

absl::Status RunCheck(const CheckVerbFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            MakeDevice(flags.step.plan.device));
  const reference::GradientCheckOptions gradients;
  LOADLINE_ASSIGN_OR_RETURN(
      const ModelCheck check,
      CheckModel(flags.step, *device, flags.gradients ? &gradients : nullptr));
  if (flags.json) {
    Print("{}\n", JsonText(CheckJson(check)));
  } else {
    PrintText(CheckTable(check));
  }
  if (check.status.ok()) return check.status;
  return absl::Status(check.status.code(),
                      absl::StrCat(check.model, ": ", CheckVerdict(check)));
}

}  // namespace

VerbBody AddCheck(CLI::App* app) {
  auto flags = std::make_shared<CheckVerbFlags>();
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddDeviceFlag(app, &flags->step.plan.device);
  app->add_flag("--gradients", flags->gradients,
                "Compare the gradient of every operator with finite "
                "differences in double");
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunCheck(*flags); };
}

}  // namespace loadline::tools
