// A step in micro-batches has the gradients of the whole batch, at any budget,
// and `--micro-batches auto` is at least as fast as every fixed number.
#include "models/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "planner/problem/machine.h"
#include "planner/solve/solve.h"
#include "tests/end_to_end/run_command.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/structures.h"

namespace loadline {
namespace {

// Fixed figures, so that plans depend on no machine.
planner::Machine AnyMachine() {
  planner::Machine machine;
  machine.name = "made-up";
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 25e9;
  machine.host_bytes = int64_t{1} << 40;
  machine.rates = planner::Rates{.matmul_flop_per_s = {{"f32", 1e12}},
                                 .memory_bytes_per_s = 1e11};
  return machine;
}

struct ZooRun {
  std::string model;
  std::string data;
  std::string loss = "cross_entropy";
  std::vector<std::string> splits;
  std::string precision = "fp32";
  int64_t batch = 16;
  int64_t steps = 1;
  double momentum = 0.9;
  float learning_rate = 1e-3f;
  bool own_statistics = false;
  bool ignores_targets = true;  // every fifth
};

const ZooRun kCases[] = {{"mlp", "digits-train.npz"},
                         {"gpt", "text-train.npz"},
                         {"unet", "digits-train.npz"}};

tools::StepFlags FlagsFor(const ZooRun& c, int64_t parts) {
  tools::StepFlags flags;
  flags.model.model = Zoo(c.model + ".onnx");
  flags.model.batch = c.batch;
  flags.loss.loss = c.loss;
  if (!c.data.empty()) flags.loss.data = Zoo(c.data);
  flags.optimizer.optimizer = "sgd";
  flags.optimizer.momentum = c.momentum;
  if (c.model == "gpt") flags.optimizer.clip_norm = 0.25;
  flags.plan.micro_batches = absl::StrCat(parts);
  flags.plan.micro_batch_statistics = c.own_statistics;
  flags.plan.splits = c.splits;
  flags.optimizer.precision = c.precision;
  flags.purpose.work_limit = 300'000;
  return flags;
}

// Numbers in [-1, 1) for floats, small ones for integers.
std::vector<std::byte> SomeContents(const models::TensorType& type,
                                    uint32_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  uint32_t state = seed;
  for (int64_t i = 0; i < type.elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    if (type.dtype == models::DType::kF32) {
      const float x = static_cast<float>(state >> 8) / (1 << 23) - 1;
      std::memcpy(bytes.data() + 4 * i, &x, 4);
    } else {
      const int64_t x = state >> 31;
      std::memcpy(bytes.data() + 8 * i, &x, 8);
    }
  }
  return bytes;
}

// The data; where the case says so, with every fifth target ignored.
absl::StatusOr<executor::DataSet> DataFor(const ZooRun& c,
                                          const models::Graph& graph) {
  executor::DataSet data;
  if (!c.data.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(data, executor::LoadData(Zoo(c.data), graph));
  } else {
    const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
    data.examples = *executor::BatchOf(graph);
    for (size_t i = 0; i < graph.inputs.size(); i += parts) {
      models::TensorType type = graph.value(graph.inputs[i]).type;
      type.dims[0] *= models::MicroBatchesOf(graph);
      executor::Column column;
      column.name = graph.value(graph.inputs[i]).name;
      column.row_bytes = type.bytes() / type.dims[0];
      column.data = SomeContents(type, static_cast<uint32_t>(i / parts + 7));
      data.columns.push_back(std::move(column));
    }
  }
  std::vector<std::byte>& target = data.columns.back().data;
  const int64_t ignored = -100;
  for (size_t i = 0; c.ignores_targets && i + 8 <= target.size(); i += 40) {
    std::memcpy(target.data() + i, &ignored, 8);
  }
  return data;
}

struct Outcome {
  float loss = 0;
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::string, std::vector<float>> statistics;
  std::string weights_sha256;
  int dropouts = 0;
};

// One step, if the case has no more. After it, SGD's momentum is the gradient.
absl::StatusOr<Outcome> RunStep(const ZooRun& c, int64_t parts,
                                const std::string& budget) {
  tools::StepFlags flags = FlagsFor(c, parts);
  flags.plan.budget = budget;
  executor::CpuDevice device;
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model,
                            tools::ImportModel(flags.model, true));
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph,
                            tools::BuildStep(std::move(model.graph), flags));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      tools::PoseStep(graph, c.model, AnyMachine(), device));
  LOADLINE_ASSIGN_OR_RETURN(planner::Plan plan,
                            planner::KeepEverything(problem));
  if (!budget.empty()) {
    planner::SolveOptions options;
    options.work_limit = 10'000;
    options.bound_work_limit = 0;
    options.budget_bytes = plan.predicted.peak_bytes * 7 / 10;
    LOADLINE_ASSIGN_OR_RETURN(
        plan, budget == "smallest" ? planner::SolveSmallest(problem, options)
                                   : planner::Solve(problem, options));
  }
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data, DataFor(c, graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto program,
                            executor::Load(graph, problem, plan, device));
  LOADLINE_ASSIGN_OR_RETURN(const executor::TrainResult result,
                            executor::Train(*program, data,
                                            {.steps = c.steps,
                                             .learning_rate = c.learning_rate,
                                             .seed = 5,
                                             .shuffle = false}));
  EXPECT_EQ(result.arena_bytes, plan.arena_bytes);
  Outcome outcome;
  outcome.loss = result.losses[0];
  outcome.weights_sha256 = result.weights_sha256;
  for (const models::Node& node : graph.nodes) {
    outcome.dropouts += node.op == "Dropout";
  }
  for (models::ValueId id : program->saved_values()) {
    const models::Value& value = graph.value(id);
    const bool is_gradient = absl::EndsWith(value.name, ".momentum");
    if (!is_gradient && !absl::StrContains(value.name, "running_")) continue;
    std::vector<float> contents(static_cast<size_t>(value.type.elements()));
    LOADLINE_RETURN_IF_ERROR(program->ReadPersistent(
        value.name,
        absl::MakeSpan(reinterpret_cast<std::byte*>(contents.data()),
                       contents.size() * sizeof(float))));
    (is_gradient ? outcome.gradients : outcome.statistics)[value.name] =
        std::move(contents);
  }
  return outcome;
}

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * double{v};
  return std::sqrt(sum);
}

// The largest difference of a gradient relative to its norm, or to a
// thousandth of the largest norm: a gradient that is zero but for rounding has
// no relative error.
double WorstError(const Outcome& whole, const Outcome& divided,
                  std::string* name) {
  double total = 0;
  for (const auto& [unused, gradient] : whole.gradients) {
    total = std::max(total, Norm(gradient));
  }
  double worst = 0;
  for (const auto& [of, want] : whole.gradients) {
    const std::vector<float>& got = divided.gradients.at(of);
    std::vector<float> error(want.size());
    for (size_t i = 0; i < want.size(); ++i) error[i] = got[i] - want[i];
    const double relative = Norm(error) / std::max(Norm(want), 1e-3 * total);
    if (relative > worst) *name = of;
    worst = std::max(worst, relative);
  }
  return worst;
}

// Clipped, as gpt is here, and with every fifth target ignored. Other masks of
// its dropouts than those of the whole batch would change the gradients.
TEST(Segments, InMicroBatchesHaveTheGradientsOfTheWholeStep) {
  ZooRun c = {"gpt", "text-train.npz"};
  for (const auto& [precision, tolerance] :
       {std::pair("fp32", 2e-6), std::pair("bf16", 0.02)}) {
    c.precision = precision;
    c.splits.clear();
    const auto whole = RunStep(c, 1, "");
    ASSERT_TRUE(whole.ok()) << whole.status();
    c.splits = {"mlp=3", "attention=2", "attention.1=5"};
    for (const int64_t parts : {1, 2}) {
      const auto divided = RunStep(c, parts, "");
      ASSERT_TRUE(divided.ok()) << divided.status();
      EXPECT_NEAR(divided->loss, whole->loss,
                  tolerance * std::abs(whole->loss));
      ASSERT_EQ(divided->gradients.size(), whole->gradients.size());
      EXPECT_GT(whole->dropouts, 0);
      EXPECT_EQ(divided->dropouts, parts * whole->dropouts);
      std::string name;
      const double worst = WorstError(*whole, *divided, &name);
      EXPECT_LT(worst, tolerance)
          << precision << " in " << parts << ": " << name;
      EXPECT_GT(worst, 0) << "another order of sums has other bits";
      RecordProperty(absl::StrCat(precision, "_", parts), absl::StrCat(worst));
    }
  }
}

void ExpectSameBitsAtEveryBudget(const ZooRun& c, int64_t parts) {
  const auto keep = RunStep(c, parts, "");
  ASSERT_TRUE(keep.ok()) << c.model << ": " << keep.status();
  for (const char* budget : {"70%", "smallest"}) {
    const auto planned = RunStep(c, parts, budget);
    ASSERT_TRUE(planned.ok()) << c.model << ": " << planned.status();
    EXPECT_EQ(planned->weights_sha256, keep->weights_sha256)
        << c.model << " at " << budget;
  }
}

TEST(Segments, InMicroBatchesHaveTheSameBitsAtEveryBudget) {
  const ZooRun c = {
      "gpt", "text-train.npz", "cross_entropy", {"mlp=3", "attention=2"}};
  ExpectSameBitsAtEveryBudget(c, 2);
}

TEST(MicroBatches, HaveTheGradientsOfTheWholeBatch) {
  for (const ZooRun& c : kCases) {
    const auto whole = RunStep(c, 1, "");
    ASSERT_TRUE(whole.ok()) << c.model << ": " << whole.status();
    double total = 0;
    for (const auto& [name, gradient] : whole->gradients) {
      total = std::max(total, Norm(gradient));
    }
    for (const int64_t parts : {2, 4, 8}) {
      const auto divided = RunStep(c, parts, "");
      ASSERT_TRUE(divided.ok()) << c.model << ": " << divided.status();
      EXPECT_NEAR(divided->loss, whole->loss, 1e-6 * std::abs(whole->loss))
          << c.model << " in " << parts;
      ASSERT_EQ(divided->gradients.size(), whole->gradients.size());
      double worst = 0;
      std::string worst_name;
      for (const auto& [name, want] : whole->gradients) {
        const std::vector<float>& got = divided->gradients.at(name);
        ASSERT_EQ(got.size(), want.size());
        std::vector<float> error(want.size());
        for (size_t i = 0; i < want.size(); ++i) error[i] = got[i] - want[i];
        // A gradient that is zero but for rounding has no relative error.
        const double relative =
            Norm(error) / std::max(Norm(want), 1e-3 * total);
        if (relative > worst) worst_name = name;
        worst = std::max(worst, relative);
      }
      EXPECT_LT(worst, 1e-6)
          << c.model << " in " << parts << ": " << worst_name;
      RecordProperty(absl::StrCat(c.model, "_", parts), absl::StrCat(worst));
    }
  }
}

TEST(MicroBatches, HaveTheSameBitsAtEveryBudget) {
  for (const ZooRun& c : kCases) ExpectSameBitsAtEveryBudget(c, 4);
}

// The same as a loop over the parts: a momentum of 1 adds up the gradients of
// steps that change no weight.
TEST(MicroBatches, WithOwnStatisticsAreALoopOverTheParts) {
  ZooRun c = {"resnet18", "digits-train.npz"};
  c.ignores_targets = false;
  c.own_statistics = true;
  const auto parts = RunStep(c, 4, "");
  ASSERT_TRUE(parts.ok()) << parts.status();
  c.batch = 4;
  c.steps = 4;
  c.momentum = 1;
  c.learning_rate = 0;
  c.own_statistics = false;  // in one piece they are those of the batch
  const auto loop = RunStep(c, 1, "");
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_EQ(loop->statistics.size(), 40u);
  EXPECT_EQ(parts->statistics, loop->statistics);
  Outcome mean = *loop;
  for (auto& [unused, gradient] : mean.gradients) {
    for (float& x : gradient) x /= 4;
  }
  std::string name;
  EXPECT_LT(WorstError(mean, *parts, &name), 1e-6) << name;
}

TEST(MicroBatches, WithOwnStatisticsHaveTheSameBitsAtEveryBudget) {
  ZooRun c = {"resnet18", "digits-train.npz"};
  c.own_statistics = true;
  ExpectSameBitsAtEveryBudget(c, 2);
}

TEST(MicroBatches, AreRefusedWhereTheyWouldChangeStatistics) {
  const CommandResult run =
      RunLoadline({"plan", Zoo("resnet18.onnx"), "--batch", "4",
                   "--micro-batches", "2", "--machine", "l4"});
  EXPECT_EQ(run.exit_code, 2);
  for (const char* text :
       {"statistics over the whole batch", "--allow-micro-batch-statistics"}) {
    EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
  }
}

// What keeping everything takes besides the batch itself.
struct KeptBytes {
  int64_t peak = 0;
  int64_t inputs = 0;

  int64_t others() const { return peak - inputs; }
};

absl::StatusOr<KeptBytes> KeptBytesOf(const tools::StepFlags& flags) {
  executor::CpuDevice device;
  LOADLINE_ASSIGN_OR_RETURN(const tools::PlannedStep step,
                            tools::PoseTrainingStep(flags, device, nullptr));
  KeptBytes bytes;
  bytes.peak = step.keep_everything.predicted.peak_bytes;
  for (models::ValueId id : step.graph.inputs) {
    bytes.inputs += step.graph.value(id).type.bytes();
  }
  return bytes;
}

// ResNet-18 for images of 224 x 224 with GroupNorm, as PyTorch's exporters
// write it. The weights are missing.
tools::StepFlags GroupNormFlags(const std::string& form) {
  tools::StepFlags flags;
  flags.model.model =
      absl::StrCat(LOADLINE_SOURCE_DIR "/tests/models/data/", form, ".onnx");
  flags.plan.machine = "h100-sxm";
  return flags;
}

const char* const kGroupNormForms[] = {
    "resnet18_group_norm",               // GroupNormalization
    "resnet18_group_norm_torchscript"};  // InstanceNormalization, Reshape

// A step of 512 examples in 16 parts beside that of one part: within a tenth
// and the larger batch's own inputs.
TEST(MicroBatches, TakeTheBytesOfOnePart) {
  std::vector<tools::StepFlags> models = {FlagsFor({"unet", ""}, 1)};
  models[0].plan.machine = "l4";
  for (const char* form : kGroupNormForms) {
    models.push_back(GroupNormFlags(form));
  }
  for (tools::StepFlags& flags : models) {
    flags.model.batch = 32;
    const auto part = KeptBytesOf(flags);
    ASSERT_TRUE(part.ok()) << part.status();
    flags.model.batch = 512;
    const auto parts = KeptBytesOf(tools::WithMicroBatches(flags, 16));
    ASSERT_TRUE(parts.ok()) << flags.model.model << ": " << parts.status();
    EXPECT_EQ(parts->inputs, 16 * part->inputs);
    EXPECT_LE(parts->others(), part->others() * 11 / 10) << flags.model.model;
    const auto whole = KeptBytesOf(flags);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_GT(whole->others(), part->others() * 8) << flags.model.model;
  }
}

// In those bytes, which are less than a tenth of the whole batch's.
TEST(MicroBatches, SlowAutoFindsAPlanInTheBytesOfOnePart) {
  tools::StepFlags flags = GroupNormFlags(kGroupNormForms[0]);
  flags.purpose.work_limit = 5'000;
  flags.model.batch = 32;
  const auto part = KeptBytesOf(flags);
  ASSERT_TRUE(part.ok()) << part.status();
  const int64_t budget_bytes = part->others() * 11 / 10 + 16 * part->inputs;
  flags.model.batch = 512;
  flags.plan.micro_batches = "auto";
  executor::CpuDevice device;
  const auto plain = tools::PoseTrainingStep(flags, device, nullptr);
  ASSERT_TRUE(plain.ok()) << plain.status();
  flags.plan.budget =
      absl::StrCat(budget_bytes + plain->problem.machine->reserved_bytes, "B");
  const auto chosen = tools::PlanTrainingStep(flags, device, nullptr);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_LE(chosen->plan.arena_bytes, budget_bytes);
  EXPECT_GT(models::MicroBatchesOf(chosen->graph), 1);
  // In 16 parts everything fits.
  EXPECT_LE(chosen->plan.predicted.step_ns,
            plain->keep_everything.predicted.step_ns * 11 / 10);
}

// By brute force: every number of parts that `auto` may try, at ten budgets.
TEST(MicroBatches, AutoIsNeverSlowerThanAnyFixedNumber) {
  for (const char* model : {"mlp"}) {
    tools::StepFlags flags = FlagsFor({model, "digits-train.npz"}, 1);
    flags.model.batch = 8;
    flags.plan.machine = "l4";
    flags.purpose.work_limit = 5'000;
    executor::CpuDevice device;
    const auto plain = tools::PoseTrainingStep(flags, device, nullptr);
    ASSERT_TRUE(plain.ok()) << plain.status();
    int64_t slower_budget_ns = 0;
    for (int percent = 10; percent <= 100; percent += 10) {
      const int64_t bytes = plain->keep_everything.budget_bytes * percent / 100;
      flags.plan.budget =
          absl::StrCat(bytes + plain->problem.machine->reserved_bytes, "B");
      int64_t fastest_ns = 0;
      for (const int64_t parts : {1, 2, 4, 8}) {
        const auto fixed = tools::PlanTrainingStep(
            tools::WithMicroBatches(flags, parts), device, nullptr);
        if (!fixed.ok()) continue;
        const int64_t step_ns = fixed->plan.predicted.step_ns;
        if (fastest_ns == 0 || step_ns < fastest_ns) fastest_ns = step_ns;
      }
      flags.plan.micro_batches = "auto";
      const auto chosen = tools::PlanTrainingStep(flags, device, nullptr);
      EXPECT_EQ(chosen.ok(), fastest_ns > 0)
          << model << " at " << percent << " %: " << chosen.status();
      if (!chosen.ok()) continue;
      const int64_t step_ns = chosen->plan.predicted.step_ns;
      EXPECT_LE(step_ns, fastest_ns) << model << " at " << percent << " %";
      EXPECT_LE(chosen->plan.arena_bytes, bytes);
      if (slower_budget_ns > 0) {
        EXPECT_LE(step_ns, slower_budget_ns) << model << " at " << percent;
      }
      slower_budget_ns = step_ns;
    }
    EXPECT_GT(slower_budget_ns, 0) << "no budget was met";
  }
}

}  // namespace
}  // namespace loadline
