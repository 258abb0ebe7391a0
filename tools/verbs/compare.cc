// `loadline compare`: two plans of one problem, or a plan and its run. Tested
// by tests/tools/report/compare_test.cc.
#include "tools/report/compare.h"

#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/plan_files.h"

namespace loadline::tools {
namespace {

struct CompareVerbFlags {
  std::string a;
  std::string b;
  std::string problem;
  bool json = false;
};

absl::Status RunCompare(const CompareVerbFlags& flags) {
  std::optional<planner::Problem> problem;
  if (!flags.problem.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(problem, ReadProblemFile(flags.problem));
  }
  const planner::Problem* given = problem.has_value() ? &*problem : nullptr;
  LOADLINE_ASSIGN_OR_RETURN(const Compared a, ReadCompared(flags.a, given));
  LOADLINE_ASSIGN_OR_RETURN(const Compared b, ReadCompared(flags.b, given));
  if (flags.json) {
    Print("{}\n", JsonText(CompareJson(a, b)));
  } else {
    PrintText(CompareTable(a, b));
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddCompare(CLI::App* app) {
  auto flags = std::make_shared<CompareVerbFlags>();
  app->add_option("a", flags->a,
                  "Plan file, or what plan, run or report printed with --json")
      ->required();
  app->add_option("b", flags->b, "The same, to compare with a")->required();
  app->add_option("--problem", flags->problem,
                  "The problem that plan files were made for")
      ->type_name("FILE")
      ->take_last();
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunCompare(*flags); };
}

}  // namespace loadline::tools
