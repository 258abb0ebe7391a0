// Used by plan_invariance_test.cc and by tests/campaign.
#include "tests/property/random_network.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "passes/cost_model.h"
#include "passes/make_problem.h"
#include "passes/training_pipeline.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline {
namespace {

constexpr int64_t kBatch = 8;
constexpr int64_t kWidth = 48;
constexpr int64_t kClasses = 5;

// Contents that depend on the name only.
models::Tensor Contents(const std::string& name, std::vector<int64_t> dims) {
  models::TensorType type{models::DType::kF32, std::move(dims)};
  std::vector<float> values(static_cast<size_t>(type.elements()));
  uint32_t state = 1;
  for (char c : name) state = state * 31 + static_cast<uint8_t>(c);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = 0.2f * (static_cast<float>(state >> 8) / (1 << 24) - 0.5f);
  }
  return models::MakeTensor(type, values.data());
}

// Every value is f32[kBatch, kWidth] up to the logits.
class Network {
 public:
  models::Graph Build(const Layers& layers) {
    made_ = {graph_.AddInput("x", {models::DType::kF32, {kBatch, kWidth}})};
    for (const auto& [kind, back] : layers) AddLayer(kind, back);
    graph_.outputs = {Linear(made_.back(), kClasses)};
    return std::move(graph_);
  }

 private:
  models::ValueId Parameter(std::vector<int64_t> dims) {
    const std::string name = absl::StrCat("p", parameters_++);
    return graph_.AddParameter(name, Contents(name, std::move(dims)));
  }

  models::ValueId Op(const std::string& op, std::vector<models::ValueId> inputs,
                     models::Attributes attributes = {}) {
    auto outputs = graph_.AddNode(op, absl::StrCat("n", graph_.nodes.size()),
                                  std::move(inputs), std::move(attributes));
    LOADLINE_CHECK(outputs.ok());
    return (*outputs)[0];
  }

  models::ValueId Linear(models::ValueId x, int64_t width) {
    return Op("Add", {Op("MatMul", {x, Parameter({kWidth, width})}),
                      Parameter({width})});
  }

  void AddLayer(uint8_t kind, uint8_t back) {
    const models::ValueId x = made_.back();
    const models::ValueId other = made_[made_.size() - 1 - back % made_.size()];
    const auto next = [&]() -> models::ValueId {
      switch (kind % 10) {
        case 0:
          return Linear(x, kWidth);
        case 1:
          return Op("Relu", {x});
        case 2:
          return Op("Gelu", {x});
        case 3:
          return Op("Tanh", {x});
        case 4:
          return Op("Add", {x, other});
        case 5:
          return Op("Mul", {x, other});
        case 6: {
          models::Attributes attributes;
          attributes.Set("axis", int64_t{1});
          attributes.Set("epsilon", 1e-5);
          return Op("LayerNormalization",
                    {x, Parameter({kWidth}), Parameter({kWidth})},
                    std::move(attributes));
        }
        case 7: {
          models::Attributes attributes;
          attributes.Set("axis", int64_t{1});
          return Op("Softmax", {x}, std::move(attributes));
        }
        case 8: {
          models::Attributes attributes;
          attributes.Set("ratio", 0.25);
          attributes.Set("salt", static_cast<int64_t>(graph_.nodes.size()));
          return Op("Dropout", {x}, std::move(attributes));
        }
        default:
          return Op("MatMul", {x, Parameter({kWidth, kWidth})});
      }
    };
    made_.push_back(next());
  }

  models::Graph graph_;
  std::vector<models::ValueId> made_;
  int parameters_ = 0;
};

}  // namespace

planner::Machine SlowMachine() {
  planner::Machine machine;
  machine.name = "made up";
  machine.device_bytes = int64_t{1} << 30;
  machine.host_bytes = int64_t{1} << 30;
  machine.d2h.bytes_per_s = 1e9;
  machine.h2d.bytes_per_s = 1e9;
  machine.d2h.latency_ns = machine.h2d.latency_ns = 1000;
  machine.d2h_h2d_factor = 0.8;
  machine.rates = planner::Rates{.matmul_flop_per_s = {{"f32", 1e10}},
                                 .memory_bytes_per_s = 5e9,
                                 .launch_ns = 500};
  return machine;
}

absl::StatusOr<NetworkStep> MakeNetworkStep(const Layers& layers) {
  return MakeStep(Network().Build(layers), {});
}

absl::StatusOr<NetworkStep> MakeStep(models::Graph model,
                                     const std::vector<passes::Split>& splits) {
  NetworkStep step;
  passes::TrainingOptions options;
  options.loss.target = {models::DType::kI64, {kBatch}};
  options.splits = splits;
  LOADLINE_ASSIGN_OR_RETURN(
      step.graph, passes::BuildTrainingStep(std::move(model), options, {}));
  executor::CpuDevice device;
  passes::MakeProblemOptions problem_options;
  problem_options.name = "random";
  problem_options.machine = SlowMachine();
  problem_options.smallest_offload_bytes = 256;
  problem_options.cost = passes::CostFromMachine(
      SlowMachine(),
      [&device](const models::Graph& graph,
                const models::Node& node) -> absl::StatusOr<int64_t> {
        LOADLINE_ASSIGN_OR_RETURN(const auto kernel,
                                  device.Prepare(graph, node));
        return kernel->workspace_bytes();
      });
  LOADLINE_ASSIGN_OR_RETURN(step.problem,
                            passes::MakeProblem(step.graph, problem_options));
  return step;
}

absl::Status RunSteps(executor::Program& program, int64_t first, int count) {
  const models::Tensor x = Contents("x", {kBatch, kWidth});
  std::vector<int64_t> target(kBatch);
  for (size_t i = 0; i < target.size(); ++i) {
    target[i] = static_cast<int64_t>(i) % kClasses;
  }
  const std::vector<const std::byte*> inputs = {
      x.data->data(), reinterpret_cast<const std::byte*>(target.data())};
  for (int64_t step = first; step < first + count; ++step) {
    LOADLINE_RETURN_IF_ERROR(
        program.Run({.learning_rate = 0.05f, .step = step, .seed = 7}, inputs));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> SavedBytes(executor::Program& program) {
  std::vector<std::byte> all;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    const size_t begin = all.size();
    all.resize(begin + static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program.ReadPersistent(value.name, absl::MakeSpan(all).subspan(begin)));
  }
  return all;
}

absl::Status RestoreBytes(executor::Program& program,
                          absl::Span<const std::byte> saved) {
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    const auto bytes = static_cast<size_t>(value.type.bytes());
    LOADLINE_RETURN_IF_ERROR(
        program.WritePersistent(value.name, saved.subspan(0, bytes)));
    saved.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> TrainNetwork(const NetworkStep& step,
                                                    const planner::Plan& plan,
                                                    executor::Device& device,
                                                    int count) {
  LOADLINE_ASSIGN_OR_RETURN(
      const auto program,
      executor::Load(step.graph, step.problem, plan, device, {.poison = true}));
  LOADLINE_RETURN_IF_ERROR(RunSteps(*program, 1, count));
  return SavedBytes(*program);
}

}  // namespace loadline
