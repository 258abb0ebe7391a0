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
            "n2 10: fc2.weight.0 fc2.bias.0; frozen: output of the model n2\n");
}

// Zero divided by zero times a mask is no number, while the removed channel is
// gone.
TEST(FindPruneGroups, MarksPolesAtZeroApproximate) {
  const auto approximate = [](const char* op, bool by_itself) {
    Builder b;
    const ValueId x = b.Input("x", {4, 6});
    const ValueId h = b.Op("MatMul", {x, b.Parameter("w", {6, 8})});
    const ValueId y = by_itself ? b.Op(op, {h, h}) : b.Op(op, {h});
    b.Output(b.Op("MatMul", {y, b.Parameter("w2", {8, 5})}));
    const auto groups = FindPruneGroups(b.graph);
    return groups.ok() ? (*groups)[0].approximate : "error";
  };
  EXPECT_EQ(approximate("Div", true), "zero in Div n1");
  EXPECT_EQ(approximate("Sqrt", false), "zero in Sqrt n1");
  EXPECT_EQ(approximate("Log", false), "zero in Log n1");
  EXPECT_EQ(approximate("Mul", true), "");
  EXPECT_EQ(approximate("Tanh", false), "");
  EXPECT_EQ(approximate("Exp", false), "");
}

TEST(FindPruneGroups, SaysWhyAGroupIsFrozen) {
  const auto frozen = [](const char* op, models::Attributes attributes) {
    Builder b;
    const ValueId x = b.Input("x", {4, 6});
    const ValueId h = b.Op("MatMul", {x, b.Parameter("w", {6, 8})});
    const ValueId y = b.Op(op, {h}, std::move(attributes));
    const std::vector<int64_t> dims = b.graph.value(y).type.dims;
    b.Output(b.Op("MatMul", {y, b.Parameter("w2", {dims.back(), 5})}));
    const auto groups = FindPruneGroups(b.graph);
    return groups.ok() ? (*groups)[0].frozen : "error";
  };
  EXPECT_EQ(frozen("Softmax", {{"axis", int64_t{1}}}),
            "the axis of Softmax n1");
  EXPECT_EQ(frozen("CumSum", {{"axis", int64_t{1}}}), "the axis of CumSum n1");
  EXPECT_EQ(frozen("Softmax", {{"axis", int64_t{0}}}), "");
  EXPECT_EQ(frozen("Slice", {{"starts", models::Ints{0}},
                             {"ends", models::Ints{8}},
                             {"axes", models::Ints{1}},
                             {"steps", models::Ints{2}}}),
            "the stride of Slice n1");
}

// A batch of two beside two heads: which of the two a Reshape joins is decided
// by what they are tied to, not by their size.
TEST(FindPruneGroups, TellsABatchFromHeadsOfEqualNumber) {
  Builder b;
  const ValueId x = b.Input("x", {2, 6});
  const ValueId h = b.Op("MatMul", {x, b.Parameter("w", {6, 8})});
  const ValueId rows = b.Op("Reshape", {h}, {{"shape", models::Ints{1, 4, 4}}});
  std::vector<ValueId> operands = {rows};
  for (const char* name : {"scale", "shift"}) {
    const ValueId twice = b.Op("Expand", {b.Parameter(name, {2})},
                               {{"shape", models::Ints{2, 2}}});
    operands.push_back(b.Op("Reshape", {twice}, {{"shape", models::Ints{4}}}));
  }
  const ValueId n = b.Op("BatchNormTraining", operands, {{"epsilon", 1e-5}});
  const ValueId back = b.Op("Reshape", {n}, {{"shape", models::Ints{2, 8}}});
  b.Output(b.Op("MatMul", {back, b.Parameter("w2", {8, 5})}));
  EXPECT_EQ(Groups(b.graph),
            "n0 2: w.1 scale.0 shift.0 w2.0\n"
            "n8 5: w2.1; frozen: output of the model n8\n");
}

}  // namespace
}  // namespace loadline::passes
