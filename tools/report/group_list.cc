// Groups that may be pruned with what a channel of each costs, then the frozen
// ones with their reasons. Tested by tests/tools/verbs/golden_test.cc.
#include "tools/report/group_list.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"

namespace loadline::tools {
namespace {

constexpr size_t kNameColumns = 26;

int64_t ChannelBytes(const ListedGroup& listed) {
  return listed.channel.parameter_bytes + listed.channel.activation_bytes;
}

void AppendGroup(const ListedGroup& listed, std::string* text) {
  const passes::PruneGroup& group = listed.group;
  absl::StrAppend(text, group.name);
  if (group.name.size() >= kNameColumns) absl::StrAppend(text, "\n");
  absl::StrAppend(
      text, fmt::format("{:>{}}{:>14}{:>18}{:>12}\n", FormatCount(group.width),
                        group.name.size() >= kNameColumns
                            ? kNameColumns + 9
                            : kNameColumns + 9 - group.name.size(),
                        FormatCount(listed.channel.parameters),
                        FormatCount(listed.channel.macs),
                        FormatBytes(ChannelBytes(listed))));
  absl::StrAppend(text, "  ", Wrapped(absl::StrJoin(listed.operators, " "), 2),
                  "\n");
  if (!group.approximate.empty()) {
    absl::StrAppend(
        text, "  ",
        Wrapped(absl::StrCat("approximate: ", group.approximate), 2), "\n");
  }
}

}  // namespace

absl::StatusOr<GroupList> ListGroups(const models::Graph& model) {
  GroupList list;
  list.model = model.name;
  list.size = passes::SizeOfModel(model);
  LOADLINE_ASSIGN_OR_RETURN(std::vector<passes::PruneGroup> groups,
                            passes::FindPruneGroups(model));
  for (passes::PruneGroup& group : groups) {
    ListedGroup listed;
    for (models::NodeId id : group.nodes) {
      const std::string& op = model.node(id).op;
      if (std::find(listed.operators.begin(), listed.operators.end(), op) ==
          listed.operators.end()) {
        listed.operators.push_back(op);
      }
    }
    if (group.frozen.empty()) list.size.channels += group.width;
    listed.channel = passes::SizeOfChannel(model, group);
    listed.group = std::move(group);
    list.groups.push_back(std::move(listed));
  }
  return list;
}

std::string GroupTable(const GroupList& list) {
  int64_t open = 0;
  for (const ListedGroup& listed : list.groups) {
    open += listed.group.frozen.empty() ? 1 : 0;
  }
  std::string text = fmt::format(
      "{} parameters, {} MACs, {} of activations in one forward pass\n"
      "{} channels in {} groups may be pruned\n",
      FormatCount(list.size.parameters), FormatCount(list.size.macs),
      FormatBytes(list.size.activation_bytes), FormatCount(list.size.channels),
      open);
  if (open > 0) {
    absl::StrAppend(
        &text,
        fmt::format("\n{:<{}}{:>9}{:>14}{:>18}{:>12}\n", "group", kNameColumns,
                    "channels", "parameters", "MACs", "bytes"),
        fmt::format("{:<{}}{:>9}{:>14}{:>18}{:>12}\n", "", kNameColumns, "",
                    "per channel", "per channel", "per channel"));
  }
  for (const ListedGroup& listed : list.groups) {
    if (listed.group.frozen.empty()) AppendGroup(listed, &text);
  }
  if (open == static_cast<int64_t>(list.groups.size())) return text;
  absl::StrAppend(&text, "\nfrozen\n");
  for (const ListedGroup& listed : list.groups) {
    if (listed.group.frozen.empty()) continue;
    absl::StrAppend(&text, listed.group.name, ", ",
                    FormatCount(listed.group.width), " channels\n  ",
                    Wrapped(listed.group.frozen, 2), "\n");
  }
  return text;
}

nlohmann::ordered_json GroupsJson(const models::Graph& model,
                                  const GroupList& list) {
  nlohmann::ordered_json out;
  out["format"] = "loadline.groups/1";
  out["name"] = list.model;
  out["parameters"] = list.size.parameters;
  out["macs"] = list.size.macs;
  out["parameter_bytes"] = list.size.parameter_bytes;
  out["activation_bytes"] = list.size.activation_bytes;
  out["channels"] = list.size.channels;
  out["groups"] = nlohmann::ordered_json::array();
  for (const ListedGroup& listed : list.groups) {
    nlohmann::ordered_json& one = out["groups"].emplace_back();
    one["name"] = listed.group.name;
    one["channels"] = listed.group.width;
    one["operators"] = listed.operators;
    one["parameters_per_channel"] = listed.channel.parameters;
    one["macs_per_channel"] = listed.channel.macs;
    one["parameter_bytes_per_channel"] = listed.channel.parameter_bytes;
    one["activation_bytes_per_channel"] = listed.channel.activation_bytes;
    one["frozen"] = listed.group.frozen;
    one["approximate"] = listed.group.approximate;
    one["members"] = nlohmann::ordered_json::array();
    for (const passes::PruneMember& member : listed.group.members) {
      // Copies of shared constants are no tensors of the model.
      if (models::Index(member.value) >= model.values.size()) continue;
      one["members"].push_back(
          {{"name", model.value(member.value).name},
           {"axis", member.axis},
           {"indices",
            std::count_if(member.channel_of.begin(), member.channel_of.end(),
                          [](int32_t c) { return c >= 0; })}});
    }
  }
  return out;
}

}  // namespace loadline::tools
