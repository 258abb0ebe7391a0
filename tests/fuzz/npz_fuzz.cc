// libFuzzer: any bytes as an archive of arrays. Nothing may crash, and what is
// read has the bytes that its shape says. Seeds in corpus/npz.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
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
    if (!arrays.ok()) continue;
    const executor::NpyArray& array = arrays->front();
    const auto type = models::MakeTensorType(array.dtype, array.shape);
    LOADLINE_CHECK(type.ok());
    LOADLINE_CHECK(type->bytes() == static_cast<int64_t>(array.data.size()));
  }
  return 0;
}
