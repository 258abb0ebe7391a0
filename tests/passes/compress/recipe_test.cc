// Which nodes a recipe's entries are about, and what two entries may not share.
#include "passes/compress/recipe.h"

#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph.h"
#include "tests/passes/compress/networks.h"

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x -> stem/Conv (stem.weight) -> body.0/Conv (body.0.weight, body.0.bias)
//   -> Relu -> /head/Gemm (head.weight).
models::Graph SmallModel() {
  models::Graph graph;
  const models::Attributes conv = {{"kernel_shape", models::Ints{1, 1}},
                                   {"strides", models::Ints{1, 1}},
                                   {"pads", models::Ints{0, 0, 0, 0}},
                                   {"dilations", models::Ints{1, 1}},
                                   {"group", int64_t{1}}};
  const auto zeros = [](std::vector<int64_t> dims) {
    return models::ZeroTensor({models::DType::kF32, std::move(dims)});
  };
  const auto x = graph.AddInput("x", {models::DType::kF32, {2, 3, 1, 1}});
  const auto stem = graph.AddParameter("stem.weight", zeros({4, 3, 1, 1}));
  const auto body = graph.AddParameter("body.0.weight", zeros({4, 4, 1, 1}));
  const auto bias = graph.AddParameter("body.0.bias", zeros({4}));
  const auto head = graph.AddParameter("head.weight", zeros({4, 5}));
  auto y = *graph.AddNode("Conv", "/stem/Conv", {x, stem}, conv);
  y = *graph.AddNode("Conv", "/body/body.0/Conv", {y[0], body, bias}, conv);
  y = *graph.AddNode("Relu", "/Relu", {y[0]});
  y = *graph.AddNode("Reshape", "/Flatten", {y[0]},
                     {{"shape", models::Ints{2, 4}}});
  y = *graph.AddNode("Gemm", "/head/Gemm", {y[0], head});
  graph.outputs = y;
  return graph;
}

Recipe Prunes(std::vector<RecipeObject> objects) {
  Recipe recipe = {.file = "r.yaml"};
  for (RecipeObject& object : objects) {
    const auto number = static_cast<int64_t>(recipe.entries.size()) + 1;
    recipe.entries.push_back({.name = "e" + std::to_string(number),
                              .line = number,
                              .object = std::move(object),
                              .spec = PruneSpec{}});
  }
  return recipe;
}

std::vector<std::string> NamesOf(const models::Graph& graph,
                                 const std::vector<models::NodeId>& nodes) {
  std::vector<std::string> names;
  for (models::NodeId n : nodes) names.push_back(graph.node(n).name);
  return names;
}

std::vector<std::string> Matched(RecipeObject object) {
  const models::Graph graph = SmallModel();
  const auto nodes = MatchRecipe(graph, Prunes({std::move(object)}));
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  return nodes.ok() ? NamesOf(graph, nodes->at(0)) : std::vector<std::string>();
}

std::string Refusal(std::vector<RecipeObject> objects) {
  const auto nodes = MatchRecipe(SmallModel(), Prunes(std::move(objects)));
  EXPECT_FALSE(nodes.ok());
  return std::string(nodes.status().message());
}

TEST(MatchRecipe, TakesEveryNodeWithParametersByDefault) {
  EXPECT_THAT(Matched({}),
              ElementsAre("/stem/Conv", "/body/body.0/Conv", "/head/Gemm"));
}

TEST(MatchRecipe, MatchesOperatorsAndTheirAliases) {
  EXPECT_THAT(Matched({.op_types = {"Conv"}}),
              ElementsAre("/stem/Conv", "/body/body.0/Conv"));
  EXPECT_THAT(Matched({.op_types = {"Linear"}}), ElementsAre("/head/Gemm"));
}

TEST(MatchRecipe, MatchesNodesParametersAndModules) {
  EXPECT_THAT(Matched({.op_names = {"/stem/Conv"}}), ElementsAre("/stem/Conv"));
  EXPECT_THAT(Matched({.op_names = {"stem.weight"}}),
              ElementsAre("/stem/Conv"));
  EXPECT_THAT(Matched({.op_names = {"body"}}),
              ElementsAre("/body/body.0/Conv"));
  EXPECT_THAT(Matched({.op_names = {"body.0"}}),
              ElementsAre("/body/body.0/Conv"));
  EXPECT_THAT(Matched({.op_names = {"re:^(stem|head)"}}),
              ElementsAre("/stem/Conv", "/head/Gemm"));
}

TEST(MatchRecipe, LeavesOutWhatIsExcluded) {
  EXPECT_THAT(Matched({.exclude_op_names = {"head", "re:body"}}),
              ElementsAre("/stem/Conv"));
}

TEST(MatchRecipe, RefusesPatternsThatMatchNothing) {
  EXPECT_THAT(Refusal({{}, {.op_names = {"stem", "ste"}}}),
              testing::StartsWith(
                  "r.yaml:2: entry 'e2': object.op_names: 'ste' matches no"));
  EXPECT_THAT(Refusal({{.op_types = {"LSTM"}}}),
              HasSubstr("object.op_types: no node of type 'LSTM' has "
                        "parameters; types that have: Conv, Gemm"));
  EXPECT_THAT(Refusal({{.exclude_op_names = {"re:(x"}}}),
              HasSubstr("object.exclude_op_names: 're:(x' is no regular"));
  EXPECT_THAT(Refusal({{.op_types = {"Conv"}, .op_names = {"head"}}}),
              HasSubstr("object: op_types, op_names and exclude_op_names "
                        "together leave no node"));
}

TEST(MatchRecipe, RefusesTwoClaimsOnOneParameter) {
  EXPECT_THAT(Refusal({{.op_types = {"Conv"}}, {.op_names = {"stem"}}}),
              HasSubstr("entry 'e2': object: claims 'stem.weight', which "
                        "entry 'e1' claims too"));
}

// An entry of heads without names leaves the layers between attentions to
// others.
TEST(MatchRecipe, ClaimsOnlyHeadsForAnEntryOfHeads) {
  const models::Graph model = VisionTransformer();
  RecipeObject wide, packed;  // an MLP's first layer; packed projections
  for (const models::Node& node : model.nodes) {
    if (node.op != "MatMul") continue;
    const models::Value& weight = model.value(node.inputs[1]);
    if (weight.kind != models::ValueKind::kParameter) continue;
    const std::vector<int64_t>& dims = weight.type.dims;
    if (dims[1] == 4 * dims[0]) wide.op_names.push_back(weight.name);
    if (dims[1] == 3 * dims[0]) packed.op_names.push_back(weight.name);
  }
  Recipe recipe = Prunes({{}, wide});
  std::get<PruneSpec>(recipe.entries[0].spec).granularity =
      PruneGranularity::kHead;
  const auto apart = MatchRecipe(model, recipe);
  EXPECT_TRUE(apart.ok()) << apart.status();
  recipe.entries[1].object = packed;
  EXPECT_THAT(std::string(MatchRecipe(model, recipe).status().message()),
              HasSubstr("which entry 'e1' claims too"));
}

TEST(MatchRecipe, LetsOneEntryPruneWhatAnotherQuantizes) {
  Recipe recipe = Prunes({{}, {}});
  recipe.entries[1].spec = QuantizeSpec{};
  EXPECT_TRUE(MatchRecipe(SmallModel(), recipe).ok());
}

}  // namespace
}  // namespace loadline::passes
