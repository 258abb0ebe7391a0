// libFuzzer: importing any bytes gives a Graph or an error, in bounded memory.
#include <cstddef>
#include <cstdint>

#include "models/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  loadline::models::ImportOptions options;
  options.batch = 2;
  options.max_bytes = 1 << 20;
  options.max_folded_bytes = 1 << 20;
  const auto imported = loadline::models::ImportOnnxBytes(
      {reinterpret_cast<const char*>(data), size}, options);
  // An Internal error would be a bug of ours.
  if (!imported.ok() && absl::IsInternal(imported.status())) __builtin_trap();
  return 0;
}
