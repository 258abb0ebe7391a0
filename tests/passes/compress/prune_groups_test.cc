#include "passes/compress/prune_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;

// One line per group: name, width, its persistent axes, and why it is frozen or
// approximate.
std::string Groups(const models::Graph& graph) {
  const auto groups = FindPruneGroups(graph);
  EXPECT_TRUE(groups.ok()) << groups.status();
  if (!groups.ok()) return "";
  std::string text;
  for (const PruneGroup& group : *groups) {
    std::vector<std::string> members;
    for (const PruneMember& m : group.members) {
      members.push_back(absl::StrCat(graph.value(m.value).name, ".", m.axis));
    }
    absl::StrAppend(
        &text, group.name, " ", group.width, ": ", absl::StrJoin(members, " "),
        group.frozen.empty() ? "" : "; frozen: ", group.frozen,
        group.approximate.empty() ? "" : "; approximate: ", group.approximate,
        "\n");
  }
  return text;
}

TEST(FindPruneGroups, LayersOfAnMlp) {
  EXPECT_EQ(Groups(SmallMlp()),
            "n0 16: fc1.weight.0 fc1.bias.0 fc2.weight.1\n"
            "n2 10: fc2.weight.0 fc2.bias.0; frozen: output of the model n2\n"
            "fc1.weight 8: fc1.weight.1; frozen: input of the model x\n");
}

}  // namespace
}  // namespace loadline::passes
