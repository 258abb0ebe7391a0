// Pinned host memory, which copies to and from a GPU need to run at full rate.
#ifndef LOADLINE_EXECUTOR_CUDA_PINNED_H_
#define LOADLINE_EXECUTOR_CUDA_PINNED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "executor/cuda/driver.h"

namespace loadline::executor::cuda {

// One region of exactly the requested bytes, initially zero, registered once.
class PinnedRegion {
 public:
  // Prefers memory node `numa_node`; -1: no preference. ResourceExhausted: the
  // machine has too little memory.
  static absl::StatusOr<std::unique_ptr<PinnedRegion>> Create(Driver& driver,
                                                              int64_t bytes,
                                                              int numa_node);
  ~PinnedRegion();
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;

  std::byte* base() const { return base_; }
  int64_t bytes() const { return bytes_; }

 private:
  explicit PinnedRegion(Driver& driver) : driver_(driver) {}

  Driver& driver_;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  bool registered_ = false;
};

// The memory node nearest to a PCI device, from Linux's `sysfs`; -1 if there is
// only one or none is known.
int NumaNodeOf(const std::string& pci_id, const std::string& sysfs = "/sys");

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_PINNED_H_
