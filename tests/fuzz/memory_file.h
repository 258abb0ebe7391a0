// A file in memory with a path, for fuzz targets of readers that take paths.
#ifndef LOADLINE_TESTS_FUZZ_MEMORY_FILE_H_
#define LOADLINE_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/check.h"

namespace loadline {

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view bytes)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    LOADLINE_CHECK(fd_ >= 0);
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t count =
          write(fd_, bytes.data() + written, bytes.size() - written);
      LOADLINE_CHECK(count > 0);
      written += static_cast<size_t>(count);
    }
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

}  // namespace loadline

#endif  // LOADLINE_TESTS_FUZZ_MEMORY_FILE_H_
