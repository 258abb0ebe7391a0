// Whole models are pruned by half without a line of code for any of them: what
// comes out verifies, has the widths that were asked for, and trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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
#include "tests/passes/compress/networks.h"

namespace loadline::passes {
namespace {

using models::Graph;
using ::testing::ElementsAre;

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

// Halves every group that may be pruned; returns their widths.
std::vector<int64_t> ExpectHalves(const Graph& model) {
  const auto groups = FindPruneGroups(model);
  EXPECT_TRUE(groups.ok()) << groups.status();
  if (!groups.ok()) return {};
  std::vector<int64_t> widths;
  std::vector<std::vector<int64_t>> removed;
  for (const PruneGroup& group : *groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    if (!group.frozen.empty()) continue;
    channels.resize(static_cast<size_t>(group.width / 2));
    std::iota(channels.begin(), channels.end(), 0);
    widths.push_back(group.width);
  }
  const auto pruned = PruneGraph(model, *groups, removed);
  EXPECT_TRUE(pruned.ok()) << pruned.status();
  if (!pruned.ok()) return widths;
  const auto after = FindPruneGroups(pruned->graph);
  EXPECT_TRUE(after.ok()) << after.status();
  if (!after.ok()) return widths;
  EXPECT_EQ(groups->size(), after->size());
  for (size_t g = 0; g < groups->size() && g < after->size(); ++g) {
    EXPECT_EQ((*after)[g].name, (*groups)[g].name);
    EXPECT_EQ((*after)[g].width,
              (*groups)[g].width - static_cast<int64_t>(removed[g].size()))
        << (*groups)[g].name;
  }
  EXPECT_LT(SizeOfModel(pruned->graph).macs, SizeOfModel(model).macs);
  TrainingOptions training;
  training.loss.kind = LossKind::kMse;
  training.loss.target = model.value(model.outputs[0]).type;
  const auto step = BuildTrainingStep(pruned->graph, training, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return widths;
}

TEST(PruneModels, Mlp) {
  EXPECT_THAT(ExpectHalves(Zoo("mlp")), ElementsAre(128, 128));
}
TEST(PruneModels, ResNet18) {
  EXPECT_THAT(
      ExpectHalves(Zoo("resnet18")),
      ElementsAre(64, 64, 64, 128, 128, 128, 256, 256, 256, 512, 512, 512));
}
// The first and the third normalization have four groups of channels.
TEST(PruneModels, UNet) {
  EXPECT_THAT(ExpectHalves(Zoo("unet")), ElementsAre(4, 16, 4, 16, 8));
}
// The width, then heads and inner width of each of four blocks.
TEST(PruneModels, Gpt) {
  for (const char* name : {"gpt", "gpt-torchscript"}) {
    EXPECT_THAT(ExpectHalves(Zoo(name)),
                ElementsAre(64, 4, 256, 4, 256, 4, 256, 4, 256));
  }
}
TEST(PruneModels, MobileNetV2) {
  EXPECT_THAT(ExpectHalves(MobileNetV2()), ElementsAre(8, 8, 48, 12, 72, 32));
}
TEST(PruneModels, DenseNet) {
  EXPECT_THAT(ExpectHalves(DenseNet()),
              ElementsAre(8, 16, 4, 16, 4, 16, 4, 10, 16, 4, 16, 4));
}
TEST(PruneModels, VisionTransformer) {
  EXPECT_THAT(ExpectHalves(VisionTransformer()), ElementsAre(24, 4, 96, 4, 96));
}
TEST(PruneModels, LlamaBlock) {
  EXPECT_THAT(ExpectHalves(LlamaBlock()), ElementsAre(32, 4, 48));
}

// ResNet-152 has 50 blocks, of at most 2048 channels.
TEST(PruneModels, FindsGroupsOfADeepModelInASecond) {
  const Graph model = Bottlenecks(50, 1024);
  const auto start = std::chrono::steady_clock::now();
  const auto groups = FindPruneGroups(model);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->size(), 102u);
  EXPECT_LT(seconds.count(), 10) << "a tenth of a second is usual";
}

}  // namespace
}  // namespace loadline::passes
