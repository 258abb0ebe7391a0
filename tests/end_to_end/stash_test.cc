// Values stored compressed: plans that need codecs give the bits of keeping
// everything where these are lossless, and the predicted gradient error where
// they are not. On the CPU and on a CUDA device that is emulated.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "executor/cpu/kernels.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_device.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "models/storage.h"
#include "passes/training_pipeline.h"
#include "planner/problem/used_codecs.h"
#include "planner/solve/solve.h"
#include "tests/cuda_emulator/kernels.h"
#include "tests/end_to_end/run_command.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tools/pipeline/gradient_errors.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline {
namespace {

using executor::CpuDevice;
using executor::CudaDevice;
using executor::FakeCudaDriver;
using models::DType;
using models::Graph;
using models::Ints;
using models::TensorType;
using models::ValueId;

planner::Machine MadeUpMachine(bool copies) {
  planner::Machine machine;
  machine.name = "made-up";
  machine.device_bytes = int64_t{80} << 30;
  if (copies) {
    machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 25e9;
    machine.host_bytes = int64_t{32} << 30;
  }
  machine.rates = planner::Rates{{{"bf16", 4e11}, {"f32", 3e11}},
                                 /*memory_bytes_per_s=*/2e10,
                                 /*launch_ns=*/200};
  return machine;
}

models::Tensor Random(Ints dims, uint32_t seed, float scale) {
  const TensorType type{DType::kF32, std::move(dims)};
  std::vector<float> values;
  for (int64_t i = 0; i < type.elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(scale * (static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f));
  }
  return models::MakeTensor(type, values.data());
}

// Images x and numbers ids in; a comparison, a choice by its mask, a max pool
// and an embedding of the numbers: values for "bits", "u8" and "i16". What is
// computed of the embedding is the largest part, so that all of them wait at
// the peak.
struct SmallNet {
  Graph graph;

  ValueId Op(const char* op, std::vector<ValueId> inputs,
             models::Attributes attributes = {}) {
    auto made = graph.AddNode(op, "", std::move(inputs), std::move(attributes));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? (*made)[0] : models::kNoValue;
  }
};

Graph SmallStep() {
  SmallNet n;
  const ValueId x = n.graph.AddInput("x", {DType::kF32, {8, 3, 16, 16}});
  const ValueId ids = n.graph.AddInput("ids", {DType::kI64, {8, 64}});
  const ValueId w = n.graph.AddParameter("w", Random({8, 3, 3, 3}, 1, 0.3f));
  const ValueId table =
      n.graph.AddParameter("table", Random({300, 64}, 2, 0.3f));
  const ValueId narrow =
      n.graph.AddParameter("narrow", Random({512, 64}, 4, 0.1f));
  const ValueId out = n.graph.AddParameter("out", Random({64, 10}, 3, 0.1f));
  const ValueId edge = n.graph.AddConstant("edge", models::ScalarTensor(0.1f));
  const ValueId h = n.Op("Conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}});
  const ValueId r = n.Op("Sigmoid", {h});
  const ValueId mask = n.Op("Greater", {h, edge});
  const ValueId kept = n.Op("Where", {mask, r, edge});
  const ValueId pooled =
      n.Op("MaxPool", {kept},
           {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const ValueId flat = n.Op("Reshape", {pooled}, {{"shape", Ints{8, 512}}});
  const ValueId rows = n.Op("Gather", {table, ids}, {{"axis", int64_t{0}}});
  const ValueId more = n.Op("ReduceMean", {n.Op("Tanh", {rows})},
                            {{"axes", Ints{1}}, {"keepdims", int64_t{0}}});
  const ValueId sum = n.Op("Add", {n.Op("MatMul", {flat, narrow}), more});
  n.graph.outputs = {n.Op("MatMul", {sum, out})};
  passes::TrainingOptions options;
  options.loss.target = {DType::kI64, {8}};
  auto step = passes::BuildTrainingStep(std::move(n.graph), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

executor::DataSet SmallData(const Graph& graph) {
  executor::DataSet data;
  data.examples = 16;
  uint32_t seed = 9;
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph.value(id).type;
    executor::Column column;
    column.name = graph.value(id).name;
    column.row_bytes = type.bytes() / 8;
    column.data.resize(16 * column.row_bytes);
    const int64_t count =
        static_cast<int64_t>(column.data.size()) / DTypeBytes(type.dtype);
    for (int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      if (type.dtype == DType::kF32) {
        const float number = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
        std::memcpy(&column.data[i * 4], &number, 4);
      } else {
        const int64_t most = type.rank() == 1 ? 10 : 300;  // classes, rows
        const int64_t number = (seed >> 8) % most;
        std::memcpy(&column.data[i * 8], &number, 8);
      }
    }
    data.columns.push_back(std::move(column));
  }
  return data;
}

planner::Problem Pose(const Graph& graph, executor::Device& device,
                      const tools::GradientErrors& errors = {}) {
  auto problem =
      tools::PoseStep(graph, "small", MadeUpMachine(false), device, errors);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *std::move(problem);
}

// Neither reruns nor copies: what does not fit must be stored compressed.
planner::Plan OnlyCodecs(const planner::Problem& problem, bool lossy) {
  planner::SolveOptions options;
  options.allow_recompute = options.allow_offload = false;
  options.permissions.lossy = lossy;
  options.work_limit = 300'000;
  auto plan = planner::SolveSmallest(problem, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

struct StashedRun {
  std::vector<float> losses;
  std::string weights;
};

StashedRun Train(const Graph& graph, const planner::Problem& problem,
                 const planner::Plan& plan, executor::Device& device,
                 bool poison = false) {
  auto program =
      executor::Load(graph, problem, plan, device, {.poison = poison});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const auto result =
      executor::Train(**program, SmallData(graph),
                      {.steps = 4, .learning_rate = 0.01f, .seed = 3});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_EQ(device.arena().arena_bytes, plan.arena_bytes);
  return {result->losses, result->weights_sha256};
}

// A CUDA device whose kernels run on the CPU: the CPU's own, or those of CUDA
// by an emulator.
struct Cuda {
  explicit Cuda(uint64_t seed, bool emulated) : driver({.seed = seed}) {
    auto made = CudaDevice::Create(
        driver, {.prepare = executor::OnStreams(
                     driver, emulated ? cuda_emulator::PrepareKernel
                                      : executor::PrepareCpuKernel)});
    EXPECT_TRUE(made.ok()) << made.status();
    device = *std::move(made);
  }

  FakeCudaDriver driver;
  std::unique_ptr<executor::Device> device;
};

StashedRun TrainOnCuda(const Graph& graph, const planner::Problem& problem,
                       const planner::Plan& plan, uint64_t seed,
                       bool emulated) {
  Cuda cuda(seed, emulated);
  return Train(graph, problem, plan, *cuda.device, seed % 2 == 0);
}

TEST(Stash, LosslessPlansHaveTheBitsOfKeepingEverything) {
  const Graph graph = SmallStep();
  CpuDevice device;
  const planner::Problem problem = Pose(graph, device);
  const auto keep = planner::KeepEverything(problem);
  ASSERT_TRUE(keep.ok()) << keep.status();
  const planner::Plan stash = OnlyCodecs(problem, false);
  std::set<std::string> codecs;
  for (const auto& used : planner::UsedCodecs(problem, stash)) {
    EXPECT_TRUE(used.codec->lossless);
    codecs.insert(used.codec->name);
  }
  EXPECT_EQ(codecs, (std::set<std::string>{"bits", "i16", "u8"}));
  EXPECT_LT(stash.arena_bytes, keep->arena_bytes);

  const StashedRun expected = Train(graph, problem, *keep, device);
  {
    CpuDevice plain, poisoned;
    EXPECT_EQ(Train(graph, problem, stash, plain).weights, expected.weights);
    EXPECT_EQ(Train(graph, problem, stash, poisoned, true).weights,
              expected.weights);
  }
  {
    // Its workspaces have canaries.
    executor::StressDevice stressed(std::make_unique<CpuDevice>(),
                                    {.seed = 5, .most_delay_ns = 20'000});
    const planner::Problem posed = Pose(graph, stressed);
    const planner::Plan plan = OnlyCodecs(posed, false);
    EXPECT_GE(planner::UsedCodecs(posed, plan).size(), 2u);
    EXPECT_EQ(Train(graph, posed, plan, stressed, true).weights,
              expected.weights);
  }
  for (uint64_t seed : {1, 2}) {
    const StashedRun cuda = TrainOnCuda(graph, problem, stash, seed, false);
    EXPECT_EQ(cuda.losses, expected.losses);
    EXPECT_EQ(cuda.weights, expected.weights);
  }
  Cuda cuda(3, /*emulated=*/true);
  const planner::Problem posed = Pose(graph, *cuda.device);
  const planner::Plan plan = OnlyCodecs(posed, false);
  EXPECT_GE(planner::UsedCodecs(posed, plan).size(), 2u);
  const auto keep_on_cuda = planner::KeepEverything(posed);
  ASSERT_TRUE(keep_on_cuda.ok()) << keep_on_cuda.status();
  const StashedRun kept = Train(graph, posed, *keep_on_cuda, *cuda.device);
  EXPECT_EQ(TrainOnCuda(graph, posed, plan, 4, true).weights, kept.weights);
}

TEST(Stash, LossyPlansHaveTheSameBitsOnEveryRun) {
  const Graph graph = SmallStep();
  CpuDevice device;
  tools::GradientErrors errors;
  errors.most = 0.5;
  errors.of_values.assign(graph.values.size(), 0.001);
  const planner::Problem problem = Pose(graph, device, errors);
  const planner::Plan lossless = OnlyCodecs(problem, false);
  const planner::Plan lossy = OnlyCodecs(problem, true);
  const planner::CodecFigures figures = planner::FiguresOf(problem, lossy);
  EXPECT_TRUE(figures.lossy);
  EXPECT_LE(figures.error, 1);
  EXPECT_LT(lossy.arena_bytes, lossless.arena_bytes);

  CpuDevice one, two, other;
  const StashedRun first = Train(graph, problem, lossy, one);
  EXPECT_EQ(Train(graph, problem, lossy, two, true).weights, first.weights);
  EXPECT_NE(Train(graph, problem, lossless, other).weights, first.weights);
  EXPECT_EQ(TrainOnCuda(graph, problem, lossy, 1, false).weights,
            first.weights);
  Cuda cuda(2, /*emulated=*/true);
  const planner::Problem posed = Pose(graph, *cuda.device, errors);
  const planner::Plan plan = OnlyCodecs(posed, true);
  EXPECT_TRUE(planner::FiguresOf(posed, plan).lossy);
  const StashedRun emulated = Train(graph, posed, plan, *cuda.device);
  EXPECT_EQ(TrainOnCuda(graph, posed, plan, 3, true).weights, emulated.weights);
  ASSERT_EQ(emulated.losses.size(), first.losses.size());
  for (size_t i = 0; i < first.losses.size(); ++i) {
    EXPECT_NEAR(emulated.losses[i], first.losses[i], 1e-3);
  }
}

TEST(Stash, AnInputThatNoCodecHoldsIsAnError) {
  const Graph graph = SmallStep();
  CpuDevice device;
  const planner::Problem problem = Pose(graph, device);
  const planner::Plan stash = OnlyCodecs(problem, false);
  executor::DataSet data = SmallData(graph);
  const int64_t far = 70'000;
  for (executor::Column& column : data.columns) {
    if (column.name == "ids") std::memcpy(&column.data[24], &far, 8);
  }
  auto program = executor::Load(graph, problem, stash, device);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto result = executor::Train(
      **program, data, {.steps = 1, .learning_rate = 0.01f, .shuffle = false});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange)
      << result.status();
}

// The step of a model of the zoo, with a plain optimizer: after one step with a
// learning rate of 1, the weights have moved by the gradient.
struct ZooStep {
  tools::StepFlags flags;
  Graph graph;
  executor::DataSet data;
  tools::GradientErrors errors;
  planner::Problem problem;
};

ZooStep MakeZooStep(const std::string& family, int64_t batch, double most) {
  ZooStep step;
  step.flags.model.model = Zoo(family + ".onnx");
  step.flags.model.batch = batch;
  step.flags.loss.data =
      Zoo(family == "gpt" ? "text-train.npz" : "digits-train.npz");
  step.flags.optimizer.optimizer = "sgd";
  step.flags.optimizer.momentum = 0;
  step.flags.plan.max_gradient_error = most;
  auto model = tools::ImportModel(step.flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  auto graph = tools::BuildStep(std::move(model->graph), step.flags);
  EXPECT_TRUE(graph.ok()) << graph.status();
  step.graph = *std::move(graph);
  auto data = executor::LoadData(step.flags.loss.data, step.graph);
  EXPECT_TRUE(data.ok()) << data.status();
  step.data = *std::move(data);
  auto errors = tools::GradientErrorsFor(step.flags, step.graph);
  EXPECT_TRUE(errors.ok()) << errors.status();
  step.errors = *std::move(errors);
  CpuDevice device;
  auto problem = tools::PoseStep(step.graph, family, MadeUpMachine(false),
                                 device, step.errors);
  EXPECT_TRUE(problem.ok()) << problem.status();
  step.problem = *std::move(problem);
  return step;
}

std::vector<float> WeightsAfterAStep(const ZooStep& step,
                                     const planner::Plan& plan,
                                     float learning_rate) {
  CpuDevice device;
  auto program = executor::Load(step.graph, step.problem, plan, device);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto result = executor::Train(**program, step.data,
                                      {.steps = 1,
                                       .learning_rate = learning_rate,
                                       .seed = 1,
                                       .shuffle = false});
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<float> all;
  for (ValueId id : (*program)->saved_values()) {
    const models::Value& value = step.graph.value(id);
    if (value.kind != models::ValueKind::kParameter) continue;
    std::vector<float> weights(value.type.elements());
    EXPECT_TRUE(
        (*program)
            ->ReadPersistent(
                value.name,
                absl::MakeSpan(reinterpret_cast<std::byte*>(weights.data()),
                               weights.size() * sizeof(float)))
            .ok());
    all.insert(all.end(), weights.begin(), weights.end());
  }
  return all;
}

// Measured and predicted relative error of the gradient in the first step.
struct StepError {
  double measured = 0;
  double predicted = 0;
};

StepError ErrorOf(const ZooStep& step, const planner::Plan& plan) {
  const auto keep = planner::KeepEverything(step.problem);
  EXPECT_TRUE(keep.ok()) << keep.status();
  const std::vector<float> start = WeightsAfterAStep(step, *keep, 0);
  const std::vector<float> exact = WeightsAfterAStep(step, *keep, 1);
  const std::vector<float> lossy = WeightsAfterAStep(step, plan, 1);
  double gradient = 0, difference = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    gradient += std::pow(double{exact[i]} - start[i], 2);
    difference += std::pow(double{exact[i]} - lossy[i], 2);
  }
  const planner::CodecFigures figures = planner::FiguresOf(step.problem, plan);
  const StepError error = {std::sqrt(difference / gradient),
                           step.errors.most * std::sqrt(figures.error)};
  std::printf(
      "predicted %.4g, measured %.4g, %lld values, %lld of %lld bytes saved\n",
      error.predicted, error.measured, static_cast<long long>(figures.values),
      static_cast<long long>(figures.saved_bytes),
      static_cast<long long>(figures.bytes));
  return error;
}

void ExpectBelow(const StepError& error, double allowed) {
  // Training makes it larger than at the start.
  EXPECT_LE(error.predicted, allowed / 2);
  EXPECT_GT(error.measured, 0);
  EXPECT_LE(error.measured, 2 * error.predicted);
  EXPECT_LT(error.measured, allowed);
}

TEST(StashOnZoo, TheGradientErrorIsBelowWhatIsAllowed) {
  for (const auto& [family, batch] : {std::pair{"mlp", 64}, {"gpt", 4}}) {
    SCOPED_TRACE(family);
    const ZooStep step = MakeZooStep(family, batch, 0.1);
    const planner::Plan plan = OnlyCodecs(step.problem, true);
    EXPECT_TRUE(planner::FiguresOf(step.problem, plan).lossy);
    ExpectBelow(ErrorOf(step, plan), 0.1);
  }
}

// A plan may run nodes of the forward pass again from what was stored.
TEST(StashOnZoo, TheGradientErrorIsBelowWhatIsAllowedWithReruns) {
  const ZooStep step = MakeZooStep("gpt", 4, 0.5);
  const auto keep = planner::KeepEverything(step.problem);
  ASSERT_TRUE(keep.ok()) << keep.status();
  int tried = 0;
  for (int percent : {45, 35, 28}) {
    planner::SolveOptions options;
    options.budget_bytes = keep->predicted.peak_bytes / 100 * percent;
    options.permissions.lossy = true;
    options.work_limit = 100'000;
    const auto plan = planner::Solve(step.problem, options);
    if (!plan.ok() || plan->predicted.recompute_ns == 0 ||
        !planner::FiguresOf(step.problem, *plan).lossy) {
      continue;
    }
    ++tried;
    SCOPED_TRACE(percent);
    ExpectBelow(ErrorOf(step, *plan), 0.5);
  }
  EXPECT_GT(tried, 0);
}

// Strictly smaller ones: tests/planner/solve/solve_lossy_test.cc.
TEST(StashOnZoo, TheSmallestPlanIsNeverLargerWithLossyCodecs) {
  for (const auto& [family, batch] : {std::pair{"mlp", 64}, {"gpt", 4}}) {
    SCOPED_TRACE(family);
    const ZooStep step = MakeZooStep(family, batch, 0.1);
    planner::SolveOptions options;
    options.allow_offload = false;
    options.work_limit = 20'000;
    const auto lossless = planner::SolveSmallest(step.problem, options);
    ASSERT_TRUE(lossless.ok()) << lossless.status();
    options.permissions.lossy = true;
    const auto lossy = planner::SolveSmallest(step.problem, options);
    ASSERT_TRUE(lossy.ok()) << lossy.status();
    EXPECT_LE(lossy->arena_bytes, lossless->arena_bytes);
    if (planner::FiguresOf(step.problem, *lossy).lossy) {
      ExpectBelow(ErrorOf(step, *lossy), 0.1);
    }
  }
}

}  // namespace
}  // namespace loadline
