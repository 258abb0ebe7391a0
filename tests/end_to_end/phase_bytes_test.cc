// Bytes that a device really has allocated in a run under a recipe: in its
// phases, and while it changes from one to the next, calibrates and evaluates.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "executor/cpu/device.h"
#include "executor/cpu/kernels.h"
#include "executor/cuda/device.h"
#include "tests/cuda_emulator/kernels.h"
#include "tests/end_to_end/recipe_runs.h"
#include "tests/end_to_end/run_command.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tools/pipeline/train_phases.h"

namespace loadline {
namespace {

constexpr int64_t kBudgetBytes = 400 << 10;

// Removes channels, calibrates, freezes, quantizes once more after training.
constexpr char kRecipe[] = R"(compression:
- name: half
  method: {kind: prune, criterion: taylor}
  degree: {sparsity: 0.5}
  process: {start_step: 1, end_step: 4}
- name: first
  method: {kind: quantize, quantizer: lsq}
  object: {op_names: [fc1]}
  process: {start_step: 6, freeze_observer_step: 8, calibration_batches: 2}
- name: rest
  method: {kind: quantize}
  object: {op_names: [fc2, fc3]}
  process: {start_step: 10, calibration_batches: 2}
)";

// Bytes of the arenas that are alive now, and the most there ever were.
struct Ledger {
  int64_t bytes = 0;
  int64_t most_bytes = 0;
  int arenas = 0;
};

class CountedCpu : public executor::CpuDevice {
 public:
  explicit CountedCpu(Ledger& ledger) : ledger_(ledger) {}
  ~CountedCpu() override {
    if (has_arena()) ledger_.bytes -= arena().arena_bytes;
  }
  absl::Status CreateArena(const executor::ArenaSpec& spec) override {
    ++ledger_.arenas;
    ledger_.bytes += spec.arena_bytes;
    ledger_.most_bytes = std::max(ledger_.most_bytes, ledger_.bytes);
    return executor::CpuDevice::CreateArena(spec);
  }

 private:
  Ledger& ledger_;
};

using MakeDevice =
    std::function<absl::StatusOr<std::unique_ptr<executor::Device>>()>;

absl::StatusOr<tools::PhasedResult> Train(const std::string& folder,
                                          MakeDevice device) {
  tools::PhasedRun run = {.recipe_path = WriteRecipe(folder, kRecipe),
                          .steps = 10,
                          .device = std::move(device),
                          .eval_data = Zoo("digits-test.npz"),
                          .eval_every = 5};
  run.step.model.model = Zoo("mlp.onnx");
  run.step.loss.data = Zoo("digits-train.npz");
  run.step.plan.machine = LOADLINE_SOURCE_DIR "/tests/tools/machine.json";
  run.step.plan.budget = std::to_string(kBudgetBytes) + "B";
  run.step.purpose.runs_here = true;
  run.train = {.learning_rate = 0.01f};
  return tools::TrainPhases(run, nullptr);
}

void ExpectPhasesAsPlanned(const absl::StatusOr<tools::PhasedResult>& result) {
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->phases.size(), 4u);
  for (const tools::PhaseRecord& phase : result->phases) {
    EXPECT_EQ(phase.measured_arena_bytes, phase.arena_bytes);
    EXPECT_LE(phase.arena_bytes, kBudgetBytes);
  }
  EXPECT_EQ(result->evaluations.size(), 6u);
}

TEST(PhaseBytes, StayWithinTheBudgetOnTheCpuThroughEveryChange) {
  Ledger ledger;
  ExpectPhasesAsPlanned(
      Train(TestFolder("phase_bytes_cpu"),
            [&ledger]() -> absl::StatusOr<std::unique_ptr<executor::Device>> {
              return std::make_unique<CountedCpu>(ledger);
            }));
  EXPECT_GT(ledger.most_bytes, kBudgetBytes / 2);
  EXPECT_LE(ledger.most_bytes, kBudgetBytes);
  EXPECT_EQ(ledger.bytes, 0);
  // Four phases, two calibrations, and evaluations.
  EXPECT_GT(ledger.arenas, 6);
}

// The driver has the budget and a device's word of errors, and refuses more.
TEST(PhaseBytes, StayWithinTheMemoryOfADeviceThatHasTheBudget) {
  executor::FakeCudaDriver driver(
      {.memory_bytes = kBudgetBytes + executor::CudaDevice::kControlBytes});
  ExpectPhasesAsPlanned(
      Train(TestFolder("phase_bytes_cuda"),
            [&driver]() -> absl::StatusOr<std::unique_ptr<executor::Device>> {
              return executor::CudaDevice::Create(
                  driver, {.prepare = executor::OnStreams(
                               driver, executor::PrepareCpuKernel)});
            }));
  EXPECT_GT(driver.allocated().size(), 12u);
  EXPECT_EQ(driver.live(), 0);
}

}  // namespace
}  // namespace loadline
