// Buffers in the CSV format of the literature on static memory allocation:
// `id,lower,upper,size`, with half-open lifetimes [lower, upper).
#ifndef LOADLINE_TOOLS_PIPELINE_BUFFERS_CSV_H_
#define LOADLINE_TOOLS_PIPELINE_BUFFERS_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::tools {

struct CsvBuffer {
  std::string id;
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size = 0;  // bytes
};

// Columns may be in any order; others are ignored. Errors name the line: a
// missing column, a repeated id, upper <= lower, a negative size, no integer.
absl::StatusOr<std::vector<CsvBuffer>> ReadBuffersCsv(absl::string_view text);

// `id,lower,upper,size,offset`, one line per buffer in the given order.
std::string WriteBuffersCsv(const std::vector<CsvBuffer>& buffers,
                            const std::vector<int64_t>& offsets);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_BUFFERS_CSV_H_
