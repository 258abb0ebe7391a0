// Measures the compute rates of this machine. Internal to measure_machine.cc.
#ifndef LOADLINE_EXECUTOR_CPU_COMPUTE_METER_H_
#define LOADLINE_EXECUTOR_CPU_COMPUTE_METER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace loadline::executor {

// Two loads on all threads: a square f32 matrix product by oneDNN, limited by
// arithmetic, and a triad a = b + c/2, limited by memory.
class ComputeMeter {
 public:
  // Three triad buffers of `buffer_bytes` each, and three matrices, which take
  // kMatricesBytes.
  static constexpr int64_t kMatricesBytes = int64_t{12} << 20;
  static absl::StatusOr<ComputeMeter> Create(int64_t buffer_bytes);
  ComputeMeter(ComputeMeter&&);
  ~ComputeMeter();

  void Matmul();
  void Triad();
  // Over the first `bytes` of each buffer.
  void TriadOf(int64_t bytes);

  double matmul_flop() const;  // of one Matmul
  double triad_bytes() const;  // moved by one Triad

 private:
  struct State;
  explicit ComputeMeter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_COMPUTE_METER_H_
