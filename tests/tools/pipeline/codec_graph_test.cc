#include "tools/pipeline/codec_graph.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "executor/cpu/device.h"
#include "executor/measure/calibrate.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

models::Graph Step(const std::string& family) {
  StepFlags flags;
  flags.model.model =
      std::string(LOADLINE_SOURCE_DIR) + "/models/zoo/" + family + ".onnx";
  flags.model.batch = 8;
  auto model = ImportModel(flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  auto graph = BuildStep(std::move(model->graph), flags);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::set<std::string> CodecsIn(const models::Graph& codecs) {
  std::set<std::string> names;
  for (const models::Node& node : codecs.nodes) {
    names.insert(node.attributes.String("codec", ""));
  }
  return names;
}

TEST(CodecGraph, HasEveryCodecThatMayBeOfferedAndCanBeMeasured) {
  const models::Graph step = Step("gpt");
  const auto lossless = CodecGraph(step, /*lossy=*/false);
  const auto all = CodecGraph(step, /*lossy=*/true);
  ASSERT_TRUE(lossless.ok() && all.ok());
  for (const std::string& name : CodecsIn(*lossless)) {
    EXPECT_EQ(name.find("group"), std::string::npos);
  }
  EXPECT_TRUE(CodecsIn(*all).contains("group1"));
  executor::CpuDevice device;
  const auto times =
      executor::Calibrate(*all, device, {.runs = 1, .evict_bytes = 0});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_FALSE(times->empty());
}

}  // namespace
}  // namespace loadline::tools
