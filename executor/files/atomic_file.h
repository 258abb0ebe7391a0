// Replaces a file as a whole or not at all.
#ifndef LOADLINE_EXECUTOR_FILES_ATOMIC_FILE_H_
#define LOADLINE_EXECUTOR_FILES_ATOMIC_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace loadline::executor {

// Writes all bytes to `fd`, repeating after signals and partial writes. False:
// errno says why (EIO if the file takes no bytes).
bool WriteAll(int fd, const void* data, size_t bytes);

// Writes under a temporary name in the same folder; Commit syncs it to disk and
// renames it to `path`. Without a successful Commit the temporary file is
// removed and `path` is unchanged.
//
//   LOADLINE_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
//   LOADLINE_RETURN_IF_ERROR(file->Write(data, bytes));
//   LOADLINE_RETURN_IF_ERROR(file->Commit());
//
// Errors name the path and the system's reason: ResourceExhausted for a full
// disk or a file size limit, InvalidArgument otherwise. A process that runs
// under RLIMIT_FSIZE must ignore SIGXFSZ to get the former.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  absl::Status Write(const void* data, size_t bytes);
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Failed(const char* doing, int error) const;

  std::string path_;
  std::string temporary_;  // empty once renamed
  int fd_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_ATOMIC_FILE_H_
