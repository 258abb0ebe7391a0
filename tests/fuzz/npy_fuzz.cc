// libFuzzer: any bytes as a NumPy array, by itself and as the one entry of an
// archive whose checksum is right. The archive's reader accepts exactly the
// arrays whose header reads and whose data has the length that it says. Seeds
// in corpus/npy.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "executor/files/array_file.h"
#include "executor/files/npy.h"
#include "planner/base/check.h"
#include "tests/fuzz/memory_file.h"

namespace {

uint32_t Crc32(absl::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t;
    for (uint32_t i = 0; i < t.size(); ++i) {
      t[i] = i;
      for (int k = 0; k < 8; ++k) {
        t[i] = (t[i] >> 1) ^ ((t[i] & 1) != 0 ? 0xEDB88320u : 0u);
      }
    }
    return t;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (char c : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  }
  return ~crc;
}

void Put(uint32_t number, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) {
    to->push_back(static_cast<char>(number >> (8 * i)));
  }
}

// A zip archive of one stored entry (APPNOTE.TXT 4.3.7, 4.3.12 and 4.3.16).
std::string Archive(absl::string_view name, absl::string_view entry) {
  std::string common;  // what the two headers share
  Put(20, 2, &common);
  common.append(2 + 2 + 2, '\0');  // flags, stored, time
  Put(0x21, 2, &common);           // a valid date
  Put(Crc32(entry), 4, &common);
  Put(static_cast<uint32_t>(entry.size()), 4, &common);
  Put(static_cast<uint32_t>(entry.size()), 4, &common);
  Put(static_cast<uint32_t>(name.size()), 2, &common);
  Put(0, 2, &common);

  std::string archive = absl::StrCat("PK\x03\x04", common, name, entry);
  const auto directory = static_cast<uint32_t>(archive.size());
  archive.append("PK\x01\x02");
  Put(20, 2, &archive);
  archive.append(common);
  archive.append(2 + 2 + 2 + 4 + 4, '\0');  // no comment, at offset 0
  absl::StrAppend(&archive, name);
  const auto length = static_cast<uint32_t>(archive.size()) - directory;
  archive.append("PK\x05\x06");
  Put(0, 4, &archive);
  Put(1, 2, &archive);
  Put(1, 2, &archive);
  Put(length, 4, &archive);
  Put(directory, 4, &archive);
  Put(0, 2, &archive);
  return archive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline;
  const auto header = executor::ParseNpyHeader({data, size});
  bool whole = false;
  if (header.ok()) {
    LOADLINE_CHECK(header->header_bytes <= static_cast<int64_t>(size));
    LOADLINE_CHECK(header->data_bytes >= 0);
    whole =
        header->header_bytes + header->data_bytes == static_cast<int64_t>(size);
  }
  const MemoryFile file(Archive(
      "x.npy", absl::string_view(reinterpret_cast<const char*>(data), size)));
  const auto arrays = executor::ReadNpz(file.path(), {"x"});
  LOADLINE_CHECK(arrays.ok() == whole);
  if (whole) {
    const executor::NpyArray& array = arrays->front();
    LOADLINE_CHECK(array.shape == header->shape);
    const models::TensorType type{array.dtype, array.shape};
    LOADLINE_CHECK(static_cast<int64_t>(array.data.size()) == type.bytes());
  }
  // The same array, read from where it lies.
  const auto stored = executor::OpenNpzArray(file.path(), "x");
  LOADLINE_CHECK(stored.ok() == whole);
  if (whole) {
    std::vector<std::byte> last(1);
    const int64_t bytes = (*stored)->header().data_bytes;
    LOADLINE_CHECK((*stored)->header().shape == header->shape);
    if (bytes > 0) {
      LOADLINE_CHECK((*stored)->Read(bytes - 1, absl::MakeSpan(last)).ok());
      LOADLINE_CHECK(last[0] == static_cast<std::byte>(data[size - 1]));
    }
  }
  return 0;
}
