// Pinned host memory: what copies to and from a GPU run at full rate with.
#ifndef LOADLINE_EXECUTOR_CUDA_PINNED_H_
#define LOADLINE_EXECUTOR_CUDA_PINNED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "executor/cuda/driver.h"

namespace loadline::executor::cuda {

// One region of exactly the bytes asked for, zero at first, registered once.
class PinnedRegion {
 public:
  // On the memory node `numa_node` where it has room; -1: wherever.
  // ResourceExhausted where the machine has not that much.
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

// The memory node next to a PCI device, as Linux says under `sysfs`; -1 where
// there is only one, or none is known.
int NumaNodeOf(const std::string& pci_id, const std::string& sysfs = "/sys");

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_PINNED_H_
