// `loadline groups`: what of a model can be pruned. Tested by
// tests/tools/verbs/golden_test.cc.
#include <memory>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/import_model.h"
#include "tools/report/group_list.h"

namespace loadline::tools {
namespace {

struct GroupsVerbFlags {
  ModelFlags model;
  bool json = false;
};

absl::Status RunGroups(const GroupsVerbFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportModel(flags.model, /*training=*/true));
  LOADLINE_ASSIGN_OR_RETURN(const GroupList list, ListGroups(model.graph));
  if (flags.json) {
    Print("{}\n", JsonText(GroupsJson(model.graph, list)));
  } else {
    PrintText(GroupTable(list));
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddGroups(CLI::App* app) {
  auto flags = std::make_shared<GroupsVerbFlags>();
  AddModelFlags(app, &flags->model);
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunGroups(*flags); };
}

}  // namespace loadline::tools
