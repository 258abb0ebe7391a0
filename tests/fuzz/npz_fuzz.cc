// libFuzzer: any bytes as an archive of arrays. Nothing may crash, and what is
// read has the bytes that its shape says. Seeds in corpus/npz.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/files/array_file.h"
#include "executor/files/npy.h"
#include "models/types.h"
#include "planner/base/check.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline;
  const MemoryFile file(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  for (const char* name : {"x", "target"}) {
    const auto arrays = executor::ReadNpz(file.path(), {name});
    const auto stored = executor::OpenNpzArray(file.path(), name);
    if (stored.ok() && *stored != nullptr) {
      const int64_t bytes = (*stored)->header().data_bytes;
      std::byte ends[2] = {};
      // Errors are allowed: the archive may end before the array.
      if (bytes > 0) {
        const auto first = absl::MakeSpan(ends).subspan(0, 1);
        const auto last = absl::MakeSpan(ends).subspan(1, 1);
        const bool read = (*stored)->Read(bytes - 1, last).ok() &&
                          (*stored)->Read(0, first).ok();
        LOADLINE_CHECK(read || !arrays.ok());
      }
    }
    if (!arrays.ok()) continue;
    const executor::NpyArray& array = arrays->front();
    const auto type = models::MakeTensorType(array.dtype, array.shape);
    LOADLINE_CHECK(type.ok());
    LOADLINE_CHECK(type->bytes() == static_cast<int64_t>(array.data.size()));
  }
  return 0;
}
