// The safetensors format: eight bytes of header length (little-endian), a JSON
// header, and the tensors' bytes.
#ifndef LOADLINE_EXECUTOR_FILES_SAFETENSORS_H_
#define LOADLINE_EXECUTOR_FILES_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/types.h"

namespace loadline::executor {

struct NamedType {
  std::string name;
  models::TensorType type;
};

// A key of metadata, for which WriteSafetensors writes a hash of the header and
// of the contents: an altered byte of either is an error of ReadSafetensors.
// Files without it are read unchecked.
inline constexpr char kContentHash[] = "content_hash";

// Writes the tensors in this order, one at a time: `contents(i, to)` writes the
// bytes of tensor i to `to`. Replaces `path` as a whole or leaves it unchanged
// (planner::AtomicFile). Errors: AtomicFile's, and those of `contents`.
absl::Status WriteSafetensors(
    const std::string& path, const std::vector<NamedType>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<absl::Status(size_t, absl::Span<std::byte>)>& contents);

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, models::TensorType> types;
  std::map<std::string, std::vector<std::byte>> contents;
};

// Reads and checks everything: lengths within the file, offsets in order
// without gaps or overlaps, sizes that match the shapes, and kContentHash.
// NotFound: no such file. InvalidArgument: a malformed or damaged file; names
// the tensor.
absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path);

// The same from bytes in memory.
absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FILES_SAFETENSORS_H_
