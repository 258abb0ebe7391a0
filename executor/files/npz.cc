// An .npz file is a zip archive with one NAME.npy per array; libzip unpacks it.
// Sizes that the archive declares are checked against the bytes it holds before
// anything is allocated. Tested in tests/executor/files/npz_test.cc.
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/files/npy.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipCloser>;
using File = std::unique_ptr<zip_file_t, ZipCloser>;

// Deflate compresses at most about 1032 to 1; a larger ratio is an attack.
constexpr uint64_t kMaxRatio = 1100;
constexpr size_t kChunkBytes = 1 << 20;

absl::StatusOr<Archive> OpenArchive(const std::string& path) {
  int error = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &error));
  if (archive != nullptr) return archive;
  if (error == ZIP_ER_NOENT) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  zip_error_t text;
  zip_error_init_with_code(&text, error);
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(
      path, " is not a readable .npz archive: ", zip_error_strerror(&text)));
  zip_error_fini(&text);
  return status;
}

std::string ArrayNames(zip_t* archive) {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count && i < 20; ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    if (name == nullptr) continue;
    std::string s(name);
    if (s.size() > 4 && s.substr(s.size() - 4) == ".npy") {
      s.resize(s.size() - 4);
    }
    names.push_back(std::move(s));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

// The whole entry, unpacked; libzip compares its checksum.
absl::StatusOr<std::vector<std::byte>> ReadEntry(zip_t* archive,
                                                 zip_uint64_t index) {
  zip_stat_t stat;
  if (zip_stat_index(archive, index, 0, &stat) != 0 ||
      (stat.valid & ZIP_STAT_SIZE) == 0 ||
      (stat.valid & ZIP_STAT_COMP_SIZE) == 0) {
    return absl::InvalidArgumentError("its size is not known");
  }
  if (stat.size / kMaxRatio > stat.comp_size + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("claims ", stat.size, " bytes out of ", stat.comp_size));
  }
  File file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) {
    return absl::InvalidArgumentError(zip_strerror(archive));
  }
  std::vector<std::byte> data;
  while (true) {
    const size_t had = data.size();
    // One byte more than should be left, to notice an entry that goes on.
    const size_t chunk =
        std::min<zip_uint64_t>(kChunkBytes, stat.size - had + 1);
    data.resize(had + chunk);
    const zip_int64_t n = zip_fread(file.get(), data.data() + had, chunk);
    if (n < 0) return absl::InvalidArgumentError(zip_file_strerror(file.get()));
    data.resize(had + static_cast<size_t>(n));
    if (n == 0) break;
    if (data.size() > stat.size) {
      return absl::InvalidArgumentError("longer than the archive says");
    }
  }
  if (data.size() != stat.size) {
    return absl::InvalidArgumentError("shorter than the archive says");
  }
  return data;
}

template <typename Narrow, typename Wide>
std::vector<std::byte> Widened(const std::vector<std::byte>& from) {
  const size_t count = from.size() / sizeof(Narrow);
  std::vector<std::byte> to(count * sizeof(Wide));
  for (size_t i = 0; i < count; ++i) {
    Narrow x;
    std::memcpy(&x, from.data() + i * sizeof(Narrow), sizeof(Narrow));
    const auto y = static_cast<Wide>(x);
    std::memcpy(to.data() + i * sizeof(Wide), &y, sizeof(Wide));
  }
  return to;
}

// The data in the header's dtype.
std::vector<std::byte> InDType(const NpyHeader& header,
                               std::vector<std::byte> data) {
  if (header.narrow_bytes == 0) return data;
  if (header.narrow_bytes == 4) return Widened<uint32_t, int64_t>(data);
  return header.narrow_signed ? Widened<int16_t, int32_t>(data)
                              : Widened<uint16_t, int32_t>(data);
}

absl::StatusOr<NpyArray> ReadArray(zip_t* archive, zip_uint64_t index) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                            ReadEntry(archive, index));
  LOADLINE_ASSIGN_OR_RETURN(
      const NpyHeader header,
      ParseNpyHeader(
          {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  const auto held = static_cast<int64_t>(bytes.size()) - header.header_bytes;
  if (held != header.data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its header asks for ", header.data_bytes,
                     " bytes of data and ", held, " are there"));
  }
  bytes.erase(bytes.begin(), bytes.begin() + header.header_bytes);
  return NpyArray{header.dtype, header.shape,
                  InDType(header, std::move(bytes))};
}

}  // namespace

absl::StatusOr<std::vector<NpyArray>> ReadNpz(
    const std::string& path, absl::Span<const std::string> names) {
  LOADLINE_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(path));
  std::vector<NpyArray> arrays;
  for (const std::string& name : names) {
    const zip_int64_t index = zip_name_locate(
        archive.get(), absl::StrCat(name, ".npy").c_str(), ZIP_FL_ENC_RAW);
    if (index < 0) {
      return absl::NotFoundError(
          absl::StrCat(path, " has no array '", name,
                       "'; it has: ", ArrayNames(archive.get())));
    }
    absl::StatusOr<NpyArray> array =
        ReadArray(archive.get(), static_cast<zip_uint64_t>(index));
    if (!array.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ", array '", name,
                       "': ", std::string(array.status().message())));
    }
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

}  // namespace loadline::executor
