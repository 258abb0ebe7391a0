// A prepared kernel: one node with all its shapes, ready to run any number of
// times inside memory that the caller hands in.
#ifndef LOADLINE_EXECUTOR_DEVICE_KERNEL_H_
#define LOADLINE_EXECUTOR_DEVICE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace loadline::executor {

// What changes from step to step without being a tensor of the graph.
struct StepScalars {
  float learning_rate = 0;
  int64_t step = 1;   // 1 at the first step: Adam's bias correction
  uint64_t seed = 0;  // of the run: dropout
};

struct KernelArgs {
  // As the node's inputs; null for an absent optional input.
  absl::Span<const std::byte* const> inputs;
  absl::Span<std::byte* const> outputs;
  // workspace_bytes() bytes, 256-byte aligned; null where that is 0. Holds
  // nothing on entry and nothing after.
  std::byte* workspace = nullptr;
  const StepScalars* scalars = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Scratch the kernel needs while it runs.
  virtual int64_t workspace_bytes() const { return 0; }

  // Names of the algorithms that it could have been prepared with, its
  // library's first choice first (algorithms.h). Empty: there is one only.
  virtual std::vector<std::string> algorithms() const { return {}; }

  // Runs to completion. Allocates nothing; touches nothing outside `args`; the
  // same inputs give the same bits, wherever the buffers lie. An output may
  // lie exactly on an input where the operator's `inplace` trait says so.
  // Errors are what data can cause (an index out of range).
  virtual absl::Status Run(const KernelArgs& args) = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_KERNEL_H_
