// Training on digits with every value of the backward pass stored with loss.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/cpu/device.h"
#include "executor/measure/gradient_error.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "models/onnx/export.h"
#include "planner/problem/machine.h"
#include "planner/solve/solve.h"
#include "tests/end_to_end/run_command.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline {
namespace {

using models::Graph;
using models::Node;
using models::Phase;
using models::TensorType;
using models::ValueId;

// Everything is kept, so its figures decide nothing.
planner::Machine DigitsMachine() {
  planner::Machine machine;
  machine.name = "made-up";
  machine.device_bytes = int64_t{80} << 30;
  machine.rates = planner::Rates{.matmul_flop_per_s = {{"f32", 3e11}},
                                 .memory_bytes_per_s = 2e10};
  return machine;
}

// Every value that the backward pass reads and a lossy codec may store goes
// through the codec, whatever a plan would do. Not so the logits: with a bit
// for each, their exponentials are soon infinite.
Graph StoreEverything(const Graph& graph, const std::string& codec) {
  std::set<ValueId> candidates;
  for (ValueId id : executor::LossyCandidates(graph, 0)) candidates.insert(id);
  for (const Node& node : graph.nodes) {
    if (node.op != "SoftmaxCrossEntropyGrad") continue;
    for (ValueId id : node.inputs) candidates.erase(id);
  }
  EXPECT_FALSE(candidates.empty());
  Graph stored = graph;
  stored.nodes.clear();
  std::map<ValueId, ValueId> restored;
  int64_t salt = 1000;
  for (Node node : graph.nodes) {
    const bool later =
        node.phase == Phase::kBackward || node.phase == Phase::kUpdate;
    for (ValueId& id : node.inputs) {
      if (later && restored.contains(id)) id = restored.at(id);
    }
    stored.nodes.push_back(node);
    for (ValueId id : node.outputs) {
      if (!candidates.contains(id)) continue;
      const TensorType type = graph.value(id).type;
      const auto bytes = stored.AddNode("Encode", "", {id},
                                        {{"codec", codec}, {"salt", ++salt}});
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      const auto value = stored.AddNode(
          "Decode", "", {(*bytes)[0]},
          {{"codec", codec}, {"to", std::string("f32")}, {"shape", type.dims}});
      EXPECT_TRUE(value.ok()) << value.status();
      restored[id] = (*value)[0];
    }
  }
  return stored;
}

struct DigitsRun {
  std::string optimizer;
  float learning_rate;
  int64_t steps;
};

struct Trained {
  std::vector<float> losses;
  std::map<std::string, models::Tensor> parameters;
};

// The MLP on digits.
Trained TrainDigits(const DigitsRun& run, const std::string& codec,
                    uint64_t seed) {
  tools::StepFlags flags;
  flags.model.model = Zoo("mlp.onnx");
  flags.model.batch = 32;
  flags.loss.data = Zoo("digits-train.npz");
  flags.optimizer.optimizer = run.optimizer;
  if (run.optimizer == "sgd") flags.optimizer.momentum = 0.9;
  auto model = tools::ImportModel(flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  auto graph = tools::BuildStep(std::move(model->graph), flags);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!codec.empty()) graph = StoreEverything(*graph, codec);
  executor::CpuDevice device;
  const auto problem = tools::PoseStep(*graph, "mlp", DigitsMachine(), device);
  EXPECT_TRUE(problem.ok()) << problem.status();
  const auto plan = planner::KeepEverything(*problem);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto program = executor::Load(*graph, *problem, *plan, device);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto data = executor::LoadData(flags.loss.data, *graph);
  EXPECT_TRUE(data.ok()) << data.status();
  const auto result = executor::Train(
      **program, *data,
      {.steps = run.steps, .learning_rate = run.learning_rate, .seed = seed});
  EXPECT_TRUE(result.ok()) << result.status();
  Trained trained = {.losses = result->losses, .parameters = {}};
  for (ValueId id : (*program)->saved_values()) {
    const models::Value& value = graph->value(id);
    if (value.kind != models::ValueKind::kParameter) continue;
    std::vector<std::byte> bytes(value.type.bytes());
    EXPECT_TRUE(
        (*program)->ReadPersistent(value.name, absl::MakeSpan(bytes)).ok());
    trained.parameters[value.name] =
        models::MakeTensor(value.type, bytes.data());
  }
  return trained;
}

// Mean of the last 60 steps.
double LastLosses(const DigitsRun& run, const std::string& codec,
                  uint64_t seed) {
  const std::vector<float> losses = TrainDigits(run, codec, seed).losses;
  return std::accumulate(losses.end() - 60, losses.end(), 0.0) / 60;
}

// One seed; LOADLINE_STASH_SEEDS=3 takes the mean of three, as the docs have
// it.
int SeedsOfAccuracy() {
  const char* seeds = std::getenv("LOADLINE_STASH_SEEDS");
  return seeds == nullptr ? 1 : std::atoi(seeds);
}

// On the test images in percent.
double Accuracy(const DigitsRun& run, const std::string& codec) {
  const std::string path = TestFolder("stash_digits") + "/trained.onnx";
  const int seeds = SeedsOfAccuracy();
  double mean = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    const absl::Status written = models::ExportTrained(
        Zoo("mlp.onnx"), TrainDigits(run, codec, seed).parameters, path);
    EXPECT_TRUE(written.ok()) << written;
    const CommandResult eval =
        RunLoadline({"eval", path, "--data", Zoo("digits-test.npz"), "--batch",
                     "1", "--json"});
    EXPECT_EQ(eval.exit_code, 0) << eval.err;
    mean += eval.json()["accuracy"].get<double>() * 100 / seeds;
  }
  std::printf("%s: %.2f %%\n", codec.empty() ? "exact" : codec.c_str(), mean);
  return mean;
}

TEST(Stash, SlowEightAndFourBitsAreAsAccurateAsExactOnDigits) {
  const DigitsRun run = {"adamw", 2e-3f, 440};
  const double exact = Accuracy(run, "");
  EXPECT_GE(exact, 97.5);
  for (const char* codec : {"group8", "group4"}) {
    EXPECT_GE(Accuracy(run, codec), exact - 1) << codec;
  }
}

// Of three seeds.
struct LossOfRounding {
  double exact = 0, stochastic = 0, nearest = 0;
};

LossOfRounding MeanLosses(const DigitsRun& run) {
  LossOfRounding mean;
  for (uint64_t seed : {1, 2, 3}) {
    mean.exact += LastLosses(run, "", seed) / 3;
    mean.stochastic += LastLosses(run, "group1", seed) / 3;
    mean.nearest += LastLosses(run, "group1_nearest", seed) / 3;
  }
  std::printf("exact %.4f, stochastic %.4f, nearest %.4f\n", mean.exact,
              mean.stochastic, mean.nearest);
  return mean;
}

TEST(Stash, OneBitForEachNumberStillTrainsOnDigits) {
  const LossOfRounding loss = MeanLosses({"adamw", 1e-3f, 240});
  EXPECT_LT(loss.exact, loss.stochastic);
  EXPECT_LT(loss.stochastic, 0.4);  // 2.3 before training
  EXPECT_LT(loss.nearest, 0.4);
}

// Over many small steps noise averages out, and a bias does not. Not so with
// Adam, which divides by the noise.
TEST(Stash, StochasticRoundingTrainsBetterThanNearestInSmallSteps) {
  const LossOfRounding loss = MeanLosses({"sgd", 2e-3f, 1320});
  EXPECT_LT(loss.stochastic, loss.nearest);
  EXPECT_LT(std::abs(loss.stochastic - loss.exact),
            std::abs(loss.nearest - loss.exact) / 2);
}

}  // namespace
}  // namespace loadline
