// libFuzzer: any bytes as safetensors. Nothing may crash; what is read fills
// the file and has the bytes that its types say. Seeds in corpus/safetensors.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "executor/files/safetensors.h"
#include "planner/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline;
  const auto file = executor::ParseSafetensors(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!file.ok()) return 0;
  LOADLINE_CHECK(file->types.size() == file->contents.size());
  size_t bytes = 0;
  for (const auto& [name, type] : file->types) {
    const auto contents = file->contents.find(name);
    LOADLINE_CHECK(contents != file->contents.end());
    LOADLINE_CHECK(static_cast<int64_t>(contents->second.size()) ==
                   type.bytes());
    bytes += contents->second.size();
  }
  LOADLINE_CHECK(bytes <= size - 8);
  return 0;
}
