// Trains a model of the zoo for some steps on any device, to compare devices.
#ifndef LOADLINE_TESTS_GPU_ZOO_TRAINING_H_
#define LOADLINE_TESTS_GPU_ZOO_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"

namespace loadline {

struct ZooRun {
  std::string family;  // "mlp", "gpt", "resnet18"
  std::string budget;  // as --budget; empty: everything kept
  int64_t batch = 8;
  int64_t steps = 4;
  float learning_rate = 1e-3f;
  bool no_recompute = false;
  bool no_offload = false;
  bool poison = false;
  int64_t micro_batches = 1;
};

struct ZooOutcome {
  std::vector<float> losses;
  std::string weights_sha256;
  int64_t planned_bytes = 0;
  int64_t arena_bytes = 0;   // of the device
  int64_t device_bytes = 0;  // used on the whole device; 0 on the CPU
  int64_t copied_bytes = 0;  // in a step, to the host and back
  int64_t recompute_ns = 0;
};

// Plans with the figures of a made-up GPU, so that plans do not depend on the
// machine that runs the test.
absl::StatusOr<ZooOutcome> TrainZoo(const ZooRun& run,
                                    executor::Device& device);

}  // namespace loadline

#endif  // LOADLINE_TESTS_GPU_ZOO_TRAINING_H_
