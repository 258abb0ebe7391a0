// What is left of well-known networks after half of the channels of every group
// is gone trains on: its loss falls on random data.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/cpu/device.h"
#include "executor/program/program.h"
#include "executor/train/train.h"
#include "models/onnx/import.h"
#include "passes/compress/model_size.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "passes/training_pipeline.h"
#include "planner/solve/solve.h"
#include "tests/models/onnx_test_util.h"
#include "tests/passes/compress/networks.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

using models::DType;
using models::Graph;
using models::Value;
using models::ValueKind;

Graph Zoo(const std::string& name) {
  models::ImportOptions options;
  options.batch = 2;
  options.training = true;
  auto imported = models::ImportOnnx(
      std::string(LOADLINE_SOURCE_DIR "/models/zoo/") + name + ".onnx",
      options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? std::move(imported->graph) : Graph{};
}

// Its parameters are the inputs of the text but x.
Graph Lstm() {
  onnx::ModelProto model = models::ModelFromText(
      "g (float[2,6,8] x, float[1,64,8] weight, float[1,64,16] recurrent,"
      "   float[1,128] bias, float[16,5] head) => (float[2,6,5] y)"
      " <int64[1] one = {1}> {"
      " t = Transpose<perm=[1,0,2]>(x)"
      " h, last, cell = LSTM<hidden_size=16>(t, weight, recurrent, bias)"
      " s = Squeeze(h, one)"
      " u = Transpose<perm=[1,0,2]>(s)"
      " y = MatMul(u, head) }");
  onnx::GraphProto& graph = *model.mutable_graph();
  while (graph.input_size() > 1) {
    const onnx::ValueInfoProto input = graph.input(1);
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(input.name());
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      tensor.add_dims(dim.dim_value());
      elements *= dim.dim_value();
    }
    for (int64_t e = 0; e < elements; ++e) tensor.add_float_data(0);
    graph.mutable_input()->DeleteSubrange(1, 1);
  }
  models::ImportOptions options;
  options.training = true;
  auto imported = models::ImportOnnxBytes(models::Bytes(model), options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? std::move(imported->graph) : Graph{};
}

// Scales near one, matrices by the number of their rows' elements.
void Randomize(Graph& graph, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (Value& value : graph.values) {
    if (value.kind != ValueKind::kParameter) continue;
    const std::vector<int64_t>& dims = value.type.dims;
    const auto rows = static_cast<float>(
        dims.size() < 2 ? 1 : value.type.elements() / dims[0]);
    std::vector<float> numbers(static_cast<size_t>(value.type.elements()));
    for (float& x : numbers) {
      x = dims.size() < 2 ? 1 + 0.1f * normal(random)
                          : normal(random) / std::sqrt(rows);
    }
    value.initial = models::MakeTensor(value.type, numbers.data());
  }
}

executor::Column RandomColumn(const std::string& name,
                              const models::TensorType& type, int64_t examples,
                              std::mt19937& random) {
  const int64_t row = type.elements() / type.dims[0];
  executor::Column column;
  column.name = name;
  if (type.dtype == DType::kI64) {
    std::vector<int64_t> rows(static_cast<size_t>(row * examples));
    for (int64_t& x : rows) x = static_cast<int64_t>(random() % 50);
    column.row_bytes = row * 8;
    column.data.resize(rows.size() * 8);
    std::memcpy(column.data.data(), rows.data(), column.data.size());
    return column;
  }
  std::normal_distribution<float> normal;
  std::vector<float> rows(static_cast<size_t>(row * examples));
  for (float& x : rows) x = normal(random);
  column.row_bytes = row * 4;
  column.data.resize(rows.size() * 4);
  std::memcpy(column.data.data(), rows.data(), column.data.size());
  return column;
}

void ExpectTrainsOn(Graph model) {
  std::mt19937 random(5);
  Randomize(model, random);
  const auto groups = passes::FindPruneGroups(model);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::vector<std::vector<int64_t>> removed;
  for (const passes::PruneGroup& group : *groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    for (int64_t c = 1; c < group.width && group.frozen.empty(); c += 2) {
      channels.push_back(c);
    }
  }
  auto pruned = passes::PruneGraph(model, *groups, removed);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_LT(passes::SizeOfModel(pruned->graph).parameters,
            passes::SizeOfModel(model).parameters * 7 / 10);

  passes::TrainingOptions training;
  training.loss.kind = passes::LossKind::kMse;
  training.optimizer.kind = passes::OptimizerKind::kAdamW;
  training.loss.target = pruned->graph.value(pruned->graph.outputs[0]).type;
  const auto step =
      passes::BuildTrainingStep(std::move(pruned->graph), training, {});
  ASSERT_TRUE(step.ok()) << step.status();
  executor::CpuDevice device;
  planner::Machine machine;
  machine.name = "made-up";
  machine.device_bytes = int64_t{80} << 30;
  machine.rates = planner::Rates{{{"f32", 3e11}}, 2e10, 200};
  const auto problem = PoseStep(*step, "pruned", machine, device);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const auto plan = planner::KeepEverything(*problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto program = executor::Load(*step, *problem, *plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  executor::DataSet data;
  data.examples = step->value(step->inputs[0]).type.dims[0];
  for (const models::ValueId id : step->inputs) {
    const Value& input = step->value(id);
    data.columns.push_back(
        RandomColumn(input.name, input.type, data.examples, random));
  }
  const auto result = executor::Train(
      **program, data,
      {.steps = 20, .learning_rate = 0.01f, .seed = 1, .shuffle = false});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(result->losses.back(), 0.8f * result->losses.front());
}

TEST(PrunedTraining, ResNet18) { ExpectTrainsOn(Zoo("resnet18")); }
TEST(PrunedTraining, UNet) { ExpectTrainsOn(Zoo("unet")); }
TEST(PrunedTraining, Gpt) { ExpectTrainsOn(Zoo("gpt")); }
TEST(PrunedTraining, MobileNetV2) { ExpectTrainsOn(passes::MobileNetV2()); }
TEST(PrunedTraining, DenseNet) { ExpectTrainsOn(passes::DenseNet()); }
TEST(PrunedTraining, VisionTransformer) {
  ExpectTrainsOn(passes::VisionTransformer());
}
TEST(PrunedTraining, LlamaBlock) { ExpectTrainsOn(passes::LlamaBlock()); }
TEST(PrunedTraining, LongShortTermMemory) { ExpectTrainsOn(Lstm()); }

}  // namespace
}  // namespace loadline::tools
