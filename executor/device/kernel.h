// A prepared kernel: one node with all its shapes, ready to run any number of
// times inside memory that the caller provides.
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
  // In the order of the node's inputs; null for an absent optional input.
  absl::Span<const std::byte* const> inputs;
  absl::Span<std::byte* const> outputs;
  // workspace_bytes() bytes, 256-byte aligned; null where that is 0. Contents
  // are undefined before and after the run.
  std::byte* workspace = nullptr;
  const StepScalars* scalars = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Scratch memory that the kernel needs while it runs.
  virtual int64_t workspace_bytes() const { return 0; }

  // Names of the algorithms that the kernel can be prepared with
  // (algorithms.h), the library's first choice first. Empty: there is only one.
  virtual std::vector<std::string> algorithms() const { return {}; }

  // Runs to completion. Allocates nothing, touches nothing outside `args`, and
  // gives the same bits for the same inputs wherever the buffers lie. An output
  // may share its address with an input where the operator's `inplace` trait
  // allows it. Errors are those that data can cause, such as an index out of
  // range.
  virtual absl::Status Run(const KernelArgs& args) = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_KERNEL_H_
