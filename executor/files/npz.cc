// An .npz file is a zip archive with one NAME.npy per array; libzip unpacks it.
// Sizes that the archive declares are checked against the bytes it holds before
// anything is allocated. Tested in tests/executor/files/npz_test.cc.
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/files/array_file.h"
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
// ParseNpyHeader refuses longer ones.
constexpr int64_t kMostNpyHeaderBytes = 65536 + 12;

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

absl::Status CheckHeld(const NpyHeader& header, int64_t entry_bytes) {
  const int64_t held = entry_bytes - header.header_bytes;
  if (held == header.data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its header asks for ", header.data_bytes,
                   " bytes of data and ", held, " are there"));
}

absl::StatusOr<NpyArray> ReadArray(zip_t* archive, zip_uint64_t index) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                            ReadEntry(archive, index));
  LOADLINE_ASSIGN_OR_RETURN(
      const NpyHeader header,
      ParseNpyHeader(
          {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  LOADLINE_RETURN_IF_ERROR(
      CheckHeld(header, static_cast<int64_t>(bytes.size())));
  bytes.erase(bytes.begin(), bytes.begin() + header.header_bytes);
  return NpyArray{header.dtype, header.shape,
                  InDType(header, std::move(bytes))};
}

absl::StatusOr<zip_uint64_t> Locate(zip_t* archive, const std::string& path,
                                    const std::string& name) {
  const std::string entry = absl::StrCat(name, ".npy");
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  zip_int64_t index = -1;
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* other =
        zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (other == nullptr || entry != other) continue;
    // NumPy reads the last one, others the first.
    if (index >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has two arrays '", name, "'; save it anew"));
    }
    index = i;
  }
  if (index >= 0) return static_cast<zip_uint64_t>(index);
  return absl::NotFoundError(absl::StrCat(path, " has no array '", name,
                                          "'; it has: ", ArrayNames(archive)));
}

absl::Status InArray(const absl::Status& status, const std::string& path,
                     const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ", array '", name, "': ", status.message()));
}

// An entry that is stored as it is, so that libzip can move within it.
class NpzArray final : public ArrayFile {
 public:
  NpzArray(Archive archive, File entry, std::string path)
      : archive_(std::move(archive)),
        entry_(std::move(entry)),
        path_(std::move(path)) {}

  absl::Status ReadHeader(int64_t entry_bytes) {
    std::vector<uint8_t> begin(
        static_cast<size_t>(std::min(kMostNpyHeaderBytes, entry_bytes)));
    LOADLINE_RETURN_IF_ERROR(
        Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(begin.data()),
                               begin.size())));
    LOADLINE_ASSIGN_OR_RETURN(header_, ParseNpyHeader(begin));
    return CheckHeld(header_, entry_bytes);
  }

  // Before ReadHeader: of the entry.
  absl::Status Read(int64_t at, absl::Span<std::byte> to) override {
    // libzip 1.7 reads outside of its tables where an entry is empty.
    if (to.empty()) return absl::OkStatus();
    if (zip_fseek(entry_.get(), header_.header_bytes + at, SEEK_SET) != 0) {
      return Broken();
    }
    while (!to.empty()) {
      const zip_int64_t n = zip_fread(entry_.get(), to.data(), to.size());
      if (n <= 0) return Broken();
      to.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Broken() {
    return absl::UnavailableError(
        absl::StrCat(path_, ": ", zip_file_strerror(entry_.get())));
  }

  Archive archive_;
  File entry_;  // closed before its archive
  std::string path_;
};

// Null: compressed.
absl::StatusOr<std::unique_ptr<ArrayFile>> OpenStored(Archive archive,
                                                      zip_uint64_t index,
                                                      const std::string& path) {
  zip_stat_t stat;
  if (zip_stat_index(archive.get(), index, 0, &stat) != 0 ||
      (stat.valid & ZIP_STAT_SIZE) == 0 ||
      (stat.valid & ZIP_STAT_COMP_SIZE) == 0 ||
      (stat.valid & ZIP_STAT_COMP_METHOD) == 0) {
    return absl::InvalidArgumentError("its size is not known");
  }
  if (stat.comp_method != ZIP_CM_STORE) return nullptr;
  if (stat.comp_size != stat.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("is stored as it is, and claims ", stat.size,
                     " bytes out of ", stat.comp_size));
  }
  File entry(zip_fopen_index(archive.get(), index, 0));
  if (entry == nullptr) {
    return absl::InvalidArgumentError(zip_strerror(archive.get()));
  }
  auto array =
      std::make_unique<NpzArray>(std::move(archive), std::move(entry), path);
  LOADLINE_RETURN_IF_ERROR(array->ReadHeader(static_cast<int64_t>(stat.size)));
  return array;
}

}  // namespace

std::vector<std::byte> InDType(const NpyHeader& header,
                               std::vector<std::byte> data) {
  if (header.narrow_bytes == 0) return data;
  const size_t count = data.size() / static_cast<size_t>(header.bytes());
  std::vector<std::byte> wide(
      count * static_cast<size_t>(models::DTypeBytes(header.dtype)));
  FindConversion(header, header.dtype)(data.data(), count, wide.data());
  return wide;
}

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenNpzArray(
    const std::string& path, const std::string& name) {
  LOADLINE_ASSIGN_OR_RETURN(Archive archive, OpenArchive(path));
  LOADLINE_ASSIGN_OR_RETURN(const zip_uint64_t index,
                            Locate(archive.get(), path, name));
  absl::StatusOr<std::unique_ptr<ArrayFile>> array =
      OpenStored(std::move(archive), index, path);
  if (!array.ok()) return InArray(array.status(), path, name);
  return array;
}

absl::StatusOr<std::vector<NpyArray>> ReadNpz(
    const std::string& path, absl::Span<const std::string> names) {
  LOADLINE_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(path));
  std::vector<NpyArray> arrays;
  for (const std::string& name : names) {
    LOADLINE_ASSIGN_OR_RETURN(const zip_uint64_t index,
                              Locate(archive.get(), path, name));
    absl::StatusOr<NpyArray> array = ReadArray(archive.get(), index);
    if (!array.ok()) return InArray(array.status(), path, name);
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

}  // namespace loadline::executor
