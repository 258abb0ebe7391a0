// Whole models are pruned by half without a line of code for any of them: what
// comes out verifies, has the widths that were asked for, and trains.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"
#include "models/onnx/import.h"
#include "passes/compress/model_size.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "passes/training_pipeline.h"

namespace loadline::passes {
namespace {

using models::Graph;

Graph Zoo(const std::string& name) {
  models::ImportOptions options;
  options.batch = 2;
  options.allow_missing_weights = true;
  auto imported = models::ImportOnnx(
      std::string(LOADLINE_SOURCE_DIR "/models/zoo/") + name + ".onnx",
      options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? std::move(imported->graph) : Graph{};
}

struct Halved {
  int64_t groups = 0;
  ModelSize before, after;
};

Halved ExpectHalves(const Graph& model) {
  Halved halved;
  const auto groups = FindPruneGroups(model);
  EXPECT_TRUE(groups.ok()) << groups.status();
  if (!groups.ok()) return halved;
  std::vector<std::vector<int64_t>> removed;
  for (const PruneGroup& group : *groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    if (!group.frozen.empty()) continue;
    channels.resize(static_cast<size_t>(group.width / 2));
    std::iota(channels.begin(), channels.end(), 0);
    ++halved.groups;
  }
  const auto pruned = PruneGraph(model, *groups, removed);
  EXPECT_TRUE(pruned.ok()) << pruned.status();
  if (!pruned.ok()) return halved;
  const auto after = FindPruneGroups(pruned->graph);
  EXPECT_TRUE(after.ok()) << after.status();
  if (!after.ok()) return halved;
  EXPECT_EQ(groups->size(), after->size());
  for (size_t g = 0; g < groups->size() && g < after->size(); ++g) {
    EXPECT_EQ((*after)[g].name, (*groups)[g].name);
    EXPECT_EQ((*after)[g].width,
              (*groups)[g].width - static_cast<int64_t>(removed[g].size()))
        << (*groups)[g].name;
  }
  TrainingOptions training;
  training.loss.kind = LossKind::kMse;
  training.loss.target = model.value(model.outputs[0]).type;
  const auto step = BuildTrainingStep(pruned->graph, training, {});
  EXPECT_TRUE(step.ok()) << step.status();
  halved.before = SizeOfModel(model);
  halved.after = SizeOfModel(pruned->graph);
  return halved;
}

TEST(PruneModels, Mlp) {
  const Halved h = ExpectHalves(Zoo("mlp"));
  EXPECT_EQ(h.groups, 2);
}
TEST(PruneModels, ResNet18) {
  const Halved h = ExpectHalves(Zoo("resnet18"));
  EXPECT_EQ(h.groups, 12);
}
TEST(PruneModels, UNet) {
  const Halved h = ExpectHalves(Zoo("unet"));
  EXPECT_EQ(h.groups, 5);
}
TEST(PruneModels, Gpt) {
  const Halved h = ExpectHalves(Zoo("gpt"));
  EXPECT_EQ(h.groups, 9);
}
TEST(PruneModels, GptOfTorchScript) {
  const Halved h = ExpectHalves(Zoo("gpt-torchscript"));
  EXPECT_EQ(h.groups, 9);
}

}  // namespace
}  // namespace loadline::passes
