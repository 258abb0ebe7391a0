// Values go from phase to phase by their names; what is new starts as its graph
// says.
#include "tests/onnxruntime/quantized_training.h"

#include <cstring>
#include <memory>
#include <utility>

#include "executor/cpu/device.h"
#include "executor/program/program.h"
#include "executor/train/train.h"
#include "models/onnx/export_quantized.h"
#include "passes/compress/batch_statistics.h"
#include "passes/compress/quantized_model.h"
#include "passes/make_problem.h"
#include "passes/training_pipeline.h"
#include "passes/use_running_statistics.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"

namespace loadline {
namespace {

using models::Graph;
using models::Tensor;
using passes::QuantizeSpec;
using passes::QuantizeStage;

constexpr int64_t kBatch = 32;
constexpr int64_t kTestImages = 360;

// A graph with its plan on a device.
struct Loaded {
  Graph graph;
  planner::Problem problem;
  planner::Plan plan;
  executor::CpuDevice device;
  std::unique_ptr<executor::Program> program;
};

absl::StatusOr<std::unique_ptr<Loaded>> Load(Graph graph) {
  auto loaded = std::make_unique<Loaded>();
  loaded->graph = std::move(graph);
  passes::MakeProblemOptions options;
  executor::CpuDevice* device = &loaded->device;
  options.cost =
      [device](const Graph& g,
               const models::Node& node) -> absl::StatusOr<passes::NodeCost> {
    LOADLINE_ASSIGN_OR_RETURN(const auto kernel, device->Prepare(g, node));
    return passes::NodeCost{.time_ns = 1000,
                            .workspace_bytes = kernel->workspace_bytes()};
  };
  LOADLINE_ASSIGN_OR_RETURN(loaded->problem,
                            passes::MakeProblem(loaded->graph, options));
  LOADLINE_ASSIGN_OR_RETURN(loaded->plan,
                            planner::KeepEverything(loaded->problem));
  LOADLINE_ASSIGN_OR_RETURN(loaded->program,
                            executor::Load(loaded->graph, loaded->problem,
                                           loaded->plan, loaded->device));
  return loaded;
}

passes::LossOptions Loss(int64_t batch) {
  passes::LossOptions loss;
  loss.target = {models::DType::kI64, {batch}};
  return loss;
}

absl::StatusOr<Tensor> ReadValue(executor::Program& program,
                                 const models::Value& value) {
  std::vector<std::byte> bytes(static_cast<size_t>(value.type.bytes()));
  LOADLINE_RETURN_IF_ERROR(
      program.ReadPersistent(value.name, absl::MakeSpan(bytes)));
  return models::MakeTensor(value.type, bytes.data());
}

}  // namespace

absl::StatusOr<QuantizedTraining::Model> QuantizedTraining::Build(
    int64_t batch, bool freeze_bn, const std::optional<QuantizeSpec>& spec,
    QuantizeStage stage) {
  models::ImportOptions options;
  options.batch = batch;
  Model model;
  LOADLINE_ASSIGN_OR_RETURN(model.imported,
                            models::ImportOnnx(model_, options));
  Graph& graph = model.imported.graph;
  model.file_names = passes::FileNames(graph, model.imported.value_of);
  if (freeze_bn) LOADLINE_RETURN_IF_ERROR(passes::UseRunningStatistics(graph));
  if (!spec.has_value()) return model;
  passes::QuantizeRequest request;
  request.spec = *spec;
  request.stage = stage;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::string& op = graph.nodes[i].op;
    if (op == "Conv" || op == "Gemm" || op == "MatMul") {
      request.nodes.push_back(models::NodeId{static_cast<int32_t>(i)});
    }
  }
  const std::vector<passes::QuantizeRequest> requests = {request};
  LOADLINE_ASSIGN_OR_RETURN(model.tensors,
                            passes::AddFakeQuantize(graph, requests));
  return model;
}

absl::Status QuantizedTraining::Fill(const Model& model, Graph* graph) {
  std::map<std::string, Tensor> before = values_;
  for (models::Value& value : graph->values) {
    const bool persistent = value.kind == models::ValueKind::kParameter ||
                            value.kind == models::ValueKind::kState;
    if (!persistent) continue;
    const auto it = values_.find(value.name);
    if (it != values_.end()) value.initial = it->second;
  }
  for (const models::Value& value : model.imported.graph.values) {
    // Before any training the file has the weights.
    if (value.initial.has_value())
      before.try_emplace(value.name, *value.initial);
  }
  for (const passes::QuantizedTensor& tensor : model.tensors) {
    for (const char* suffix : {".codebook", ".codes", ".log_scale",
                               ".zero_point", ".low", ".high"}) {
      const std::string name = tensor.name + suffix;
      if (!values_.contains(name)) before.erase(name);
    }
  }
  return passes::StartQuantizers(
      model.tensors,
      [&before](absl::string_view name) -> std::optional<Tensor> {
        const auto it = before.find(std::string(name));
        if (it == before.end()) return std::nullopt;
        return it->second;
      },
      *graph);
}

absl::StatusOr<executor::DataSet> QuantizedTraining::Data(
    const std::string& file, const Graph& graph) const {
  return executor::LoadData(zoo_ + "/" + file, graph);
}

absl::Status QuantizedTraining::Train(const Phase& phase) {
  LOADLINE_ASSIGN_OR_RETURN(
      Model model, Build(kBatch, phase.freeze_bn, phase.quantize, phase.stage));
  passes::TrainingOptions options;
  options.loss = Loss(kBatch);
  options.optimizer.kind = passes::OptimizerKind::kAdamW;
  LOADLINE_ASSIGN_OR_RETURN(
      Graph step, passes::BuildTrainingStep(model.imported.graph, options, {}));
  LOADLINE_RETURN_IF_ERROR(Fill(model, &step));
  LOADLINE_ASSIGN_OR_RETURN(const auto data, Data("digits-train.npz", step));
  LOADLINE_ASSIGN_OR_RETURN(const auto loaded, Load(std::move(step)));
  LOADLINE_RETURN_IF_ERROR(
      executor::Train(*loaded->program, data,
                      {.steps = step_ + phase.steps,
                       .learning_rate = phase.learning_rate,
                       .first_step = step_,
                       .seed = seed_})
          .status());
  step_ += phase.steps;
  for (models::ValueId id : loaded->program->saved_values()) {
    const models::Value& value = loaded->graph.value(id);
    LOADLINE_ASSIGN_OR_RETURN(values_[value.name],
                              ReadValue(*loaded->program, value));
  }
  return absl::OkStatus();
}

absl::Status QuantizedTraining::RunForward(
    const Model& model, int64_t batches,
    const std::function<void(const std::string&, Tensor)>& ran) {
  LOADLINE_ASSIGN_OR_RETURN(Graph graph,
                            passes::BuildCalibration(model.imported.graph, {}));
  LOADLINE_RETURN_IF_ERROR(Fill(model, &graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto data, Data("digits-train.npz", graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto loaded, Load(std::move(graph)));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto batcher,
      executor::Batcher::Create(data, kBatch, seed_, /*shuffle=*/true));
  for (int64_t b = 0; b < batches; ++b) {
    LOADLINE_RETURN_IF_ERROR(
        loaded->program->Run({}, batcher->Batch(b).value()));
    for (const auto& [old, next] : loaded->graph.updates) {
      const models::Value& value = loaded->graph.value(old);
      LOADLINE_ASSIGN_OR_RETURN(Tensor tensor,
                                ReadValue(*loaded->program, value));
      ran(value.name, std::move(tensor));
    }
  }
  return absl::OkStatus();
}

absl::Status QuantizedTraining::Calibrate(const QuantizeSpec& spec,
                                          int64_t batches) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Model model, Build(kBatch, true, spec, QuantizeStage::kCalibrate));
  return RunForward(model, batches,
                    [this](const std::string& name, Tensor range) {
                      values_[name] = std::move(range);
                    });
}

absl::Status QuantizedTraining::EstimateStatistics(const QuantizeSpec& spec,
                                                   int64_t batches) {
  LOADLINE_ASSIGN_OR_RETURN(Model model,
                            Build(kBatch, false, spec, QuantizeStage::kFrozen));
  passes::TakeBatchStatistics(model.imported.graph);
  std::map<std::string, std::vector<double>> sums;
  LOADLINE_RETURN_IF_ERROR(RunForward(
      model, batches, [&sums](const std::string& name, const Tensor& batch) {
        std::vector<double>& sum = sums[name];
        const absl::Span<const float> numbers = batch.as<float>();
        sum.resize(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i) sum[i] += numbers[i];
      }));
  for (const auto& [name, sum] : sums) {
    std::vector<float> means;
    for (double x : sum) {
      means.push_back(static_cast<float>(x / static_cast<double>(batches)));
    }
    values_[name] = models::MakeTensor(values_.at(name).type, means.data());
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizedTraining::Outcome> QuantizedTraining::Test(
    const std::optional<QuantizeSpec>& spec) {
  LOADLINE_ASSIGN_OR_RETURN(
      Model model, Build(kTestImages, true, spec, QuantizeStage::kFrozen));
  passes::LossOptions loss = Loss(kTestImages);
  loss.keep_outputs = true;
  LOADLINE_ASSIGN_OR_RETURN(
      Graph graph, passes::BuildEvaluation(model.imported.graph, loss, {}));
  LOADLINE_RETURN_IF_ERROR(Fill(model, &graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto data, Data("digits-test.npz", graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto loaded, Load(std::move(graph)));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto batcher,
      executor::Batcher::Create(data, kTestImages, 0, /*shuffle=*/false));
  LOADLINE_RETURN_IF_ERROR(loaded->program->Run({}, batcher->Batch(0).value()));
  Outcome outcome;
  for (size_t i = 0; i < loaded->graph.outputs.size(); ++i) {
    const models::TensorType& type =
        loaded->graph.value(loaded->graph.outputs[i]).type;
    std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        loaded->program->ReadOutput(i, absl::MakeSpan(bytes)));
    if (type.dtype == models::DType::kI64) {
      int64_t correct = 0;
      std::memcpy(&correct, bytes.data(), sizeof(correct));
      outcome.accuracy = static_cast<double>(correct) / kTestImages;
    } else if (type.rank() == 2) {
      outcome.logits.resize(bytes.size() / sizeof(float));
      std::memcpy(outcome.logits.data(), bytes.data(), bytes.size());
    }
  }
  return outcome;
}

absl::Status QuantizedTraining::Export(const QuantizeSpec& spec,
                                       const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const Model model,
                            Build(kBatch, true, spec, QuantizeStage::kFrozen));
  const auto read = [this](absl::string_view name) -> std::optional<Tensor> {
    const auto it = values_.find(std::string(name));
    if (it == values_.end()) return std::nullopt;
    return it->second;
  };
  LOADLINE_ASSIGN_OR_RETURN(
      models::QuantizedModel quantized,
      passes::MakeQuantizedModel(model.tensors, read, model.file_names));
  LOADLINE_ASSIGN_OR_RETURN(Model plain,
                            Build(kBatch, false, std::nullopt, {}));
  for (const models::Value& value : plain.imported.graph.values) {
    const bool persistent = value.kind == models::ValueKind::kParameter ||
                            value.kind == models::ValueKind::kState;
    if (persistent) quantized.trained[value.name] = values_.at(value.name);
  }
  return models::ExportQuantized(model_, std::move(quantized), path);
}

}  // namespace loadline
