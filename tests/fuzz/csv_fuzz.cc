// libFuzzer: any bytes as a CSV of buffers. Nothing may crash, and buffers that
// are read keep their numbers when they are written and read again. Seeds in
// corpus/csv.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/base/check.h"
#include "tools/pipeline/buffers_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loadline::tools;
  const auto buffers = ReadBuffersCsv(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!buffers.ok()) return 0;
  const auto again = ReadBuffersCsv(
      WriteBuffersCsv(*buffers, std::vector<int64_t>(buffers->size())));
  LOADLINE_CHECK(again.ok());
  LOADLINE_CHECK(again->size() == buffers->size());
  for (size_t i = 0; i < buffers->size(); ++i) {
    const CsvBuffer& a = (*buffers)[i];
    const CsvBuffer& b = (*again)[i];
    LOADLINE_CHECK(a.lower == b.lower && a.upper == b.upper &&
                   a.size == b.size);
  }
  return 0;
}
