// Replaces a file as a whole or not at all.
#ifndef LOADLINE_PLANNER_BASE_ATOMIC_FILE_H_
#define LOADLINE_PLANNER_BASE_ATOMIC_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::planner {

// Writes under a temporary name in the same folder; Commit syncs it to disk and
// renames it to `path`. Without a successful Commit the temporary file is
// removed and `path` is unchanged; if the process is killed, the next Create
// for the same path removes it. A symbolic link stays; what it leads to is
// replaced. The new file has the permissions of the one that it replaces. What
// cannot be replaced (a pipe, a device) is written directly.
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
  // Writes again what Write wrote, `offset` bytes from the start. Only where a
  // file is replaced: what is written directly cannot be changed any more.
  bool can_rewrite() const { return !temporary_.empty(); }
  absl::Status Rewrite(size_t offset, const void* data, size_t bytes);
  absl::Status Commit();

 private:
  // An empty `temporary`: `fd` is the file itself.
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Failed(const char* doing, int error) const;

  std::string path_;
  std::string temporary_;  // empty once renamed, and where nothing is replaced
  int fd_;
};

// The whole file in one call.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_ATOMIC_FILE_H_
