// Single arrays. Tested in tests/executor/files/array_file_test.cc.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/files/array_file.h"
#include "executor/files/convert_elements.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// ParseNpyHeader refuses longer ones.
constexpr size_t kMostHeaderBytes = 65536 + 12;

class NpyFile final : public ArrayFile {
 public:
  explicit NpyFile(std::string path) : path_(std::move(path)) {}
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;
  ~NpyFile() override {
    if (file_ >= 0) close(file_);
  }

  absl::Status Open() {
    // Without waiting for the writer of a pipe, which is refused below.
    file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0 && errno == ENOENT) {
      return absl::NotFoundError(absl::StrCat(path_, ": no such file"));
    }
    struct stat status;
    if (file_ < 0 || fstat(file_, &status) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": ", std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " is not a regular file"));
    }
    const auto file_bytes = static_cast<int64_t>(status.st_size);
    std::vector<uint8_t> begin(
        std::min(kMostHeaderBytes, static_cast<size_t>(file_bytes)));
    LOADLINE_RETURN_IF_ERROR(
        ReadAt(0, absl::MakeSpan(reinterpret_cast<std::byte*>(begin.data()),
                                 begin.size())));
    absl::StatusOr<NpyHeader> header = ParseNpyHeader(begin);
    if (!header.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": ", header.status().message()));
    }
    header_ = *std::move(header);
    if (file_bytes - header_.header_bytes != header_.data_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": its header asks for ", header_.data_bytes,
                       " bytes of data and ", file_bytes - header_.header_bytes,
                       " are there"));
    }
    return absl::OkStatus();
  }

  absl::Status Read(int64_t at, absl::Span<std::byte> to) override {
    return ReadAt(header_.header_bytes + at, to);
  }

 private:
  absl::Status ReadAt(int64_t at, absl::Span<std::byte> to) {
    while (!to.empty()) {
      const ssize_t n = pread(file_, to.data(), to.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        return absl::UnavailableError(absl::StrCat(
            path_, ": ", n < 0 ? std::strerror(errno) : "has become shorter"));
      }
      at += n;
      to.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int file_ = -1;
};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string InFolder(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".npy");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenNpyArray(
    const std::string& path) {
  auto file = std::make_unique<NpyFile>(path);
  LOADLINE_RETURN_IF_ERROR(file->Open());
  return file;
}

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenArray(const std::string& path,
                                                     const std::string& name) {
  return IsFolder(path) ? OpenNpyArray(InFolder(path, name))
                        : OpenNpzArray(path, name);
}

absl::StatusOr<NpyArray> ReadArray(const std::string& path,
                                   const std::string& name) {
  if (!IsFolder(path)) {
    LOADLINE_ASSIGN_OR_RETURN(std::vector<NpyArray> arrays,
                              ReadNpz(path, {name}));
    return std::move(arrays[0]);
  }
  LOADLINE_ASSIGN_OR_RETURN(const auto file,
                            OpenNpyArray(InFolder(path, name)));
  const NpyHeader& header = file->header();
  std::vector<std::byte> raw(static_cast<size_t>(header.data_bytes));
  LOADLINE_RETURN_IF_ERROR(file->Read(0, absl::MakeSpan(raw)));
  return NpyArray{header.dtype, header.shape, InDType(header, std::move(raw))};
}

absl::StatusOr<std::vector<int64_t>> ReadArrayShape(const std::string& path,
                                                    const std::string& name) {
  LOADLINE_ASSIGN_OR_RETURN(const auto file, OpenArray(path, name));
  if (file != nullptr) return file->header().shape;
  LOADLINE_ASSIGN_OR_RETURN(NpyArray array, ReadArray(path, name));
  return std::move(array.shape);
}

}  // namespace loadline::executor
