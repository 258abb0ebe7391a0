// The dependency groups of a model, for `loadline groups`.
#ifndef LOADLINE_TOOLS_REPORT_GROUP_LIST_H_
#define LOADLINE_TOOLS_REPORT_GROUP_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "nlohmann/json_fwd.hpp"
#include "passes/compress/model_size.h"
#include "passes/compress/prune_groups.h"

namespace loadline::tools {

struct ListedGroup {
  passes::PruneGroup group;
  std::vector<std::string> operators;  // kinds, in order of first use
  passes::ModelSize channel;           // what one channel costs
};

struct GroupList {
  std::string model;
  passes::ModelSize size;  // of the model; channels: those that may be pruned
  std::vector<ListedGroup> groups;
};

// Errors: those of FindPruneGroups.
absl::StatusOr<GroupList> ListGroups(const models::Graph& model);

// At most 80 columns wide, except for longer names.
std::string GroupTable(const GroupList& list);
nlohmann::ordered_json GroupsJson(const models::Graph& model,
                                  const GroupList& list);  // loadline.groups/1

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_GROUP_LIST_H_
