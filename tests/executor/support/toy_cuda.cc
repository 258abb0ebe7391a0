// Used by the tests of the CUDA device in tests/executor/cuda.
#include "tests/executor/support/toy_cuda.h"

#include <gtest/gtest.h>

#include <utility>

#include "executor/cpu/device.h"
#include "executor/train/data.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

std::unique_ptr<CudaDevice> ToyCudaDevice(FakeCudaDriver& driver, bool graph) {
  auto device = CudaDevice::Create(
      driver, {.graph = graph, .prepare = OnStreams(driver, PrepareToyKernel)});
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

absl::StatusOr<ToyOutcome> TrainToy(const Toy& toy, const planner::Plan& plan,
                                    Device& device, LoadOptions load) {
  LOADLINE_ASSIGN_OR_RETURN(auto program,
                            Load(toy.graph, toy.problem, plan, device, load));
  const DataSet data = ToyData(toy, 40);
  LOADLINE_ASSIGN_OR_RETURN(auto batcher,
                            Batcher::Create(data, toy.options.batch, 5, true));
  ToyOutcome run;
  for (int64_t step = 0; step < kToySteps; ++step) {
    LOADLINE_ASSIGN_OR_RETURN(
        const float loss,
        program->Step({.learning_rate = 0.05f / static_cast<float>(step + 1),
                       .step = step + 1,
                       .seed = 1},
                      batcher->Batch(step).value()));
    run.losses.push_back(loss);
  }
  for (models::ValueId id : program->saved_values()) {
    const models::Value& value = toy.graph.value(id);
    run.weights.emplace_back(value.type.bytes());
    LOADLINE_RETURN_IF_ERROR(program->ReadPersistent(
        value.name, absl::MakeSpan(run.weights.back())));
  }
  return run;
}

ToyOutcome TrainToyOnCpu(const Toy& toy) {
  CpuDevice device(ToyDevice());
  auto run = TrainToy(toy, KeepPlan(toy), device);
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

}  // namespace loadline::executor
