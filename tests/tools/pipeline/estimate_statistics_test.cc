// Running statistics of a small network whose first weight becomes a codebook
// of two numbers, beside those computed here.
#include "tools/pipeline/estimate_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/models/onnx_test_util.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/device_names.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/train_phases.h"

namespace loadline::tools {
namespace {

constexpr int64_t kPixels = 64;
constexpr int64_t kChannels = 6;
constexpr int64_t kBatch = 32;
constexpr int64_t kBatches = 3;

void AddNumbers(onnx::GraphProto& graph, const std::string& name,
                const std::vector<int64_t>& dims,
                const std::vector<float>& numbers) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) tensor.add_dims(dim);
  for (float x : numbers) tensor.add_float_data(x);
}

std::string WriteNetwork(const std::string& path) {
  onnx::ModelProto model = models::ModelFromText(
      "digits (float[32,1,8,8] image) => (float[32,10] logits) {"
      " f = Flatten(image)"
      " a = MatMul(f, weight)"
      " n = BatchNormalization(a, scale, shift, mean, var)"
      " r = Relu(n)"
      " logits = MatMul(r, head) }");
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto draw = [&](int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(count));
    for (float& x : numbers) x = normal(random) / 8;
    return numbers;
  };
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto each = [](float x) { return std::vector<float>(kChannels, x); };
  AddNumbers(graph, "weight", {kPixels, kChannels}, draw(kPixels * kChannels));
  AddNumbers(graph, "scale", {kChannels}, each(1));
  AddNumbers(graph, "shift", {kChannels}, each(0));
  AddNumbers(graph, "mean", {kChannels}, each(0));
  AddNumbers(graph, "var", {kChannels}, each(1));
  AddNumbers(graph, "head", {kChannels, 10}, draw(kChannels * 10));
  std::ofstream file(path, std::ios::binary);
  EXPECT_TRUE(model.SerializeToOstream(&file));
  return path;
}

template <typename T>
std::vector<T> Numbers(const RunState& state, const std::string& name) {
  const std::vector<std::byte>& bytes = state.at(name);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

struct Statistics {
  std::vector<double> means, variances;  // by channel
};

// The mean over batches of each batch's mean and unbiased variance of
// image * weight, in the order of the file.
Statistics OfFirstBatches(const std::vector<double>& weight) {
  StepFlags flags = MlpFlags();
  const auto model = ImportModel(flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok());
  const auto data =
      executor::LoadData(ZooPath("digits-train.npz"), model->graph);
  EXPECT_TRUE(data.ok()) << data.status();
  const executor::Column* images = nullptr;
  for (const executor::Column& column : data->columns) {
    if (column.name == "image") images = &column;
  }
  Statistics statistics{std::vector<double>(kChannels),
                        std::vector<double>(kChannels)};
  if (images == nullptr) return statistics;
  const auto* pixels = reinterpret_cast<const float*>(images->data.data());
  for (int64_t b = 0; b < kBatches; ++b) {
    for (int64_t c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = b * kBatch; i < (b + 1) * kBatch; ++i) {
        double y = 0;
        for (int64_t p = 0; p < kPixels; ++p) {
          y += pixels[i * kPixels + p] *
               weight[static_cast<size_t>(p * kChannels + c)];
        }
        sum += y;
        squares += y * y;
      }
      const double mean = sum / kBatch;
      const double variance = (squares - sum * mean) / (kBatch - 1);
      statistics.means[static_cast<size_t>(c)] += mean / kBatches;
      statistics.variances[static_cast<size_t>(c)] += variance / kBatches;
    }
  }
  return statistics;
}

class EstimatedStatistics : public testing::Test {
 protected:
  // The state after 8 steps under a recipe that makes a codebook of `weight`.
  RunState Train(const std::string& process) {
    const std::string folder = FreshFolder();
    const std::string recipe = folder + "/recipe.yaml";
    std::ofstream(recipe)
        << "- method: {kind: quantize, quantizer: kmeans}\n"
           "  object: {op_names: [weight], targets: [weight]}\n"
           "  degree: {bits: 1}\n"
           "  process: {calibration_batches: 3, "
        << process << "}\n";
    PhasedRun run = {
        .step = MlpFlags(), .recipe_path = recipe, .steps = 8, .device = [] {
          return MakeDevice(kCpu);
        }};
    run.step.model.model = WriteNetwork(folder + "/network.onnx");
    run.step.loss.data = ZooPath("digits-train.npz");
    run.step.purpose.runs_here = true;
    run.train = {.learning_rate = 0.01f, .shuffle = false};
    auto result = TrainPhases(run, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? std::move(result->state) : RunState{};
  }

  static void ExpectThoseOfTheCodebook(const RunState& state, bool expected) {
    const auto entries = Numbers<float>(state, "weight.codebook");
    ASSERT_EQ(entries.size(), 2u);
    std::vector<double> weight;
    for (int32_t code : Numbers<int32_t>(state, "weight.codes")) {
      weight.push_back(entries[static_cast<size_t>(code)]);
    }
    const Statistics statistics = OfFirstBatches(weight);
    const auto means = Numbers<float>(state, "mean");
    const auto variances = Numbers<float>(state, "var");
    bool same = true;
    for (size_t c = 0; c < kChannels; ++c) {
      same = same && std::abs(means[c] - statistics.means[c]) < 1e-4 &&
             std::abs(variances[c] / statistics.variances[c] - 1) < 1e-4;
    }
    EXPECT_EQ(same, expected);
  }
};

TEST_F(EstimatedStatistics, AreThoseOfTheCodebookAfterTraining) {
  ExpectThoseOfTheCodebook(Train("start_step: 8"), true);
}

TEST_F(EstimatedStatistics, AreThoseOfTheCodebookWhereTheyFreezeWithIt) {
  const RunState state =
      Train("start_step: 5, freeze_observer_step: 5, freeze_bn_step: 5");
  ExpectThoseOfTheCodebook(state, true);
}

TEST_F(EstimatedStatistics, FollowTrainingWhereTheyAreNotFrozen) {
  ExpectThoseOfTheCodebook(Train("start_step: 4, freeze_observer_step: 4"),
                           false);
}

}  // namespace
}  // namespace loadline::tools
