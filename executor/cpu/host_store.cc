// Two stores with one interface: memory and a file. Tested in
// tests/executor/cpu/host_store_test.cc.
#include "executor/cpu/host_store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/device/device.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

class MemoryStore : public HostStore {
 public:
  MemoryStore(void* base, int64_t bytes)
      : base_(static_cast<std::byte*>(base)), bytes_(bytes) {}
  ~MemoryStore() override {
    if (base_ != nullptr) munmap(base_, bytes_);
  }

  int64_t bytes() const override { return bytes_; }

  absl::Status Read(int64_t offset, void* to, int64_t bytes) override {
    LOADLINE_RETURN_IF_ERROR(
        CheckInside({offset, bytes}, bytes_, "read of the host store"));
    if (bytes > 0) std::memcpy(to, base_ + offset, bytes);
    return absl::OkStatus();
  }

  absl::Status Write(int64_t offset, const void* from, int64_t bytes) override {
    LOADLINE_RETURN_IF_ERROR(
        CheckInside({offset, bytes}, bytes_, "write of the host store"));
    if (bytes > 0) std::memcpy(base_ + offset, from, bytes);
    return absl::OkStatus();
  }

 private:
  std::byte* base_;
  int64_t bytes_;
};

class FileStore : public HostStore {
 public:
  FileStore(int fd, int64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~FileStore() override { close(fd_); }

  int64_t bytes() const override { return bytes_; }

  absl::Status Read(int64_t offset, void* to, int64_t bytes) override {
    LOADLINE_RETURN_IF_ERROR(
        CheckInside({offset, bytes}, bytes_, "read of the host store"));
    char* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t n = pread(fd_, at, bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Failed("reading", offset, n < 0 ? errno : EIO);
      at += n;
      offset += n;
      bytes -= n;
    }
    return absl::OkStatus();
  }

  absl::Status Write(int64_t offset, const void* from, int64_t bytes) override {
    LOADLINE_RETURN_IF_ERROR(
        CheckInside({offset, bytes}, bytes_, "write of the host store"));
    const char* at = static_cast<const char*>(from);
    while (bytes > 0) {
      const ssize_t n = pwrite(fd_, at, bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Failed("writing", offset, n < 0 ? errno : EIO);
      at += n;
      offset += n;
      bytes -= n;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Failed(const char* doing, int64_t offset, int error) {
    return absl::DataLossError(absl::StrCat(
        doing, " the host store file at ", offset, ": ", std::strerror(error)));
  }

  int fd_;
  int64_t bytes_;
};

// Opens a new file and takes its name away.
int OpenUnnamed(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    std::string name = path + "/loadline-host-XXXXXX";
    const int fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) unlink(name.c_str());
    return fd;
  }
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) unlink(path.c_str());
  return fd;
}

absl::Status FileError(const std::string& path, int64_t bytes, int error) {
  const std::string text = absl::StrCat("host store ", path, " of ", bytes,
                                        " bytes: ", std::strerror(error));
  if (error == EEXIST) {
    return absl::AlreadyExistsError(
        absl::StrCat(text, "; name a file that does not exist yet"));
  }
  if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostStore>> MakeMemoryStore(int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError("a host store below 0 bytes");
  void* base = nullptr;
  if (bytes > 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot map a host store of ", bytes,
                       " bytes: ", std::strerror(errno)));
    }
  }
  return std::unique_ptr<HostStore>(new MemoryStore(base, bytes));
}

absl::StatusOr<std::unique_ptr<HostStore>> MakeFileStore(
    const std::string& path, int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError("a host store below 0 bytes");
  const int fd = OpenUnnamed(path);
  if (fd < 0) return FileError(path, bytes, errno);
  const int error = bytes == 0 ? 0 : posix_fallocate(fd, 0, bytes);
  if (error != 0) {
    close(fd);
    return FileError(path, bytes, error);
  }
  return std::unique_ptr<HostStore>(new FileStore(fd, bytes));
}

HostStoreMaker FileStoreAt(std::string path) {
  return [path = std::move(path)](int64_t bytes) {
    return MakeFileStore(path, bytes);
  };
}

bool IsInMemory(const std::string& path) {
  std::filesystem::path at = path.empty() ? "." : path;
  struct statfs info;
  while (statfs(at.c_str(), &info) != 0) {
    const std::filesystem::path parent = at.parent_path();
    if (parent == at) return false;
    at = parent.empty() ? "." : parent;
  }
  // f_type is signed on some machines and unsigned on others.
  const auto type = static_cast<uint32_t>(info.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC;
}

int64_t FreeBytesIn(const std::string& folder) {
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) != 0) return 0;
  return static_cast<int64_t>(info.f_bavail) *
         static_cast<int64_t>(info.f_frsize);
}

}  // namespace loadline::executor
