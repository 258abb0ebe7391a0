// Lists what is read, so that a new flag is refused unless someone says here
// that a problem file takes it. Tested by
// tests/tools/verbs/planner_file_flags_test.cc.
#include "tools/pipeline/planner_file_flags.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "tools/cli/flags.h"

namespace loadline::tools {
namespace {

// What a search in a problem reads, and whose memory a budget is of.
constexpr const char* kReadWithProblems[] = {
    "--device",     "--budget",   "--no-recompute",
    "--no-offload", "--no-stash", "--max-gradient-error",
    "--time-limit", "--threads",  "--plan-seed"};

constexpr char kGradientError[] = "--max-gradient-error";

absl::Status Refuse(const std::vector<std::string>& flags,
                    const std::string& file, const char* why) {
  if (flags.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(flags, ", "), ": ", file, why));
}

bool OffersLossyCodecs(const planner::Problem& problem) {
  return std::any_of(
      problem.values.begin(), problem.values.end(),
      [](const planner::Value& value) {
        return std::any_of(
            value.stash.begin(), value.stash.end(),
            [](const planner::Codec& codec) { return codec.error > 0; });
      });
}

}  // namespace

void AddPlannedStepFlags(CLI::App* app, StepFlags* flags) {
  const size_t before = app->get_options({}).size();
  AddPlannedModelFlags(app, &flags->model);
  AddLossFlags(app, &flags->loss);
  AddOptimizerFlags(app, &flags->optimizer);
  AddPlanFlags(app, &flags->plan);
  AddStructureFlags(app, &flags->plan);
  std::vector<CLI::Option*> added = app->get_options({});
  added.erase(added.begin(),
              added.begin() + static_cast<std::ptrdiff_t>(before));
  app->parse_complete_callback([added, flags] {
    for (const CLI::Option* option : added) {
      if (option->count() == 0 || option->get_positional()) continue;
      flags->given.push_back(option->get_name());
    }
  });
}

absl::Status CheckForProblemFile(const StepFlags& flags,
                                 const planner::Problem& problem) {
  std::vector<std::string> unread = flags.given;
  unread.erase(std::remove_if(unread.begin(), unread.end(),
                              [](const std::string& flag) {
                                return std::count(std::begin(kReadWithProblems),
                                                  std::end(kReadWithProblems),
                                                  flag) > 0;
                              }),
               unread.end());
  LOADLINE_RETURN_IF_ERROR(
      Refuse(unread, flags.model.model,
             " is a problem file, which has its step, machine and prices; "
             "give such flags with the model, to the command that writes it"));
  if (flags.plan.max_gradient_error > 0 && !OffersLossyCodecs(problem)) {
    return Refuse({kGradientError}, flags.model.model,
                  " offers no lossy codecs; give the flag with the model, to "
                  "plan --problem, which writes such a problem");
  }
  return absl::OkStatus();
}

absl::Status CheckForPlanFile(const StepFlags& flags) {
  return Refuse(flags.given, flags.model.model,
                " is a plan, which is shown as it is");
}

}  // namespace loadline::tools
