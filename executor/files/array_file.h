// NumPy arrays that stay in their files and are read in parts.
#ifndef LOADLINE_EXECUTOR_FILES_ARRAY_FILE_H_
#define LOADLINE_EXECUTOR_FILES_ARRAY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/files/npy.h"

namespace loadline::executor {

// Of one thread at a time.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;

  const NpyHeader& header() const { return header_; }

  // Bytes [at, at + to.size()) of the data, as the file has them, and
  // independent of the machine's memory. Allocates nothing. Unavailable: the
  // file cannot be read any more, or has become shorter.
  virtual absl::Status Read(int64_t at, absl::Span<std::byte> to) = 0;

 protected:
  NpyHeader header_;
};

// An array of an .npz archive; null if it is compressed there. The archive's
// checksum is not compared. Errors: those of ReadNpz.
absl::StatusOr<std::unique_ptr<ArrayFile>> OpenNpzArray(
    const std::string& path, const std::string& name);

// A single array, .npy. NotFound: no such file. InvalidArgument names the file
// and the fault.
absl::StatusOr<std::unique_ptr<ArrayFile>> OpenNpyArray(
    const std::string& path);

// The shape of an array of an .npz archive, or of NAME.npy in a folder. Errors:
// those of OpenNpzArray and OpenNpyArray.
absl::StatusOr<std::vector<int64_t>> ReadArrayShape(const std::string& path,
                                                    const std::string& name);

// The file of an array of an .npz archive, or of NAME.npy in a folder; null if
// it is compressed.
absl::StatusOr<std::unique_ptr<ArrayFile>> OpenArray(const std::string& path,
                                                     const std::string& name);

// The whole array, in the header's dtype; of an archive, with its checksum.
absl::StatusOr<NpyArray> ReadArray(const std::string& path,
                                   const std::string& name);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_ARRAY_FILE_H_
