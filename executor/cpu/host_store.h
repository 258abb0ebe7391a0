// Where the copy lanes of the CPU device put bytes: memory, or a file.
#ifndef LOADLINE_EXECUTOR_CPU_HOST_STORE_H_
#define LOADLINE_EXECUTOR_CPU_HOST_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace loadline::executor {

// A fixed number of bytes, zero at first. Read and Write may be called from
// several threads at once on ranges that do not overlap; both allocate nothing
// on success and are OutOfRange outside the store.
class HostStore {
 public:
  virtual ~HostStore() = default;
  virtual int64_t bytes() const = 0;
  virtual absl::Status Read(int64_t offset, void* to, int64_t bytes) = 0;
  virtual absl::Status Write(int64_t offset, const void* from,
                             int64_t bytes) = 0;
};

// An anonymous mapping.
absl::StatusOr<std::unique_ptr<HostStore>> MakeMemoryStore(int64_t bytes);

// A file of exactly `bytes` bytes at `path`, which must not exist
// (AlreadyExists). All its blocks are set aside here, so that a full disk is a
// ResourceExhausted now and not an error in the middle of a run. The name is
// removed as soon as the file is open: nothing is left behind, even by a
// crash.
absl::StatusOr<std::unique_ptr<HostStore>> MakeFileStore(
    const std::string& path, int64_t bytes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_HOST_STORE_H_
