// Where the CPU device's copy lanes store offloaded bytes: memory or a file.
#ifndef LOADLINE_EXECUTOR_CPU_HOST_STORE_H_
#define LOADLINE_EXECUTOR_CPU_HOST_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace loadline::executor {

// A fixed number of bytes, initially zero. Read and Write may run on several
// threads at once on disjoint ranges. Both allocate nothing on success and
// return OutOfRange outside the store.
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

// A file of exactly `bytes` bytes: a new one in `path`, if that is a folder;
// otherwise `path` itself, which must not exist (AlreadyExists). All blocks are
// allocated here, so that a full disk is a ResourceExhausted now and not an
// error during a run. The name is removed as soon as the file is open, so
// nothing is left even after a crash. Its bytes are read and written, never
// mapped: they are in the kernel's page cache at most, which gives them back
// when memory is short, and never resident in this process.
absl::StatusOr<std::unique_ptr<HostStore>> MakeFileStore(
    const std::string& path, int64_t bytes);

// How a device makes its store once it knows the bytes.
using HostStoreMaker =
    std::function<absl::StatusOr<std::unique_ptr<HostStore>>(int64_t bytes)>;

// MakeFileStore at this path.
HostStoreMaker FileStoreAt(std::string path);

// Whether files at `path` are themselves in RAM (tmpfs, ramfs), by the file
// system of its nearest folder that exists.
bool IsInMemory(const std::string& path);

// Bytes that a file in `folder` can have; 0: unknown.
int64_t FreeBytesIn(const std::string& folder);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_HOST_STORE_H_
