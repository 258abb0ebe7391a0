// Buffers as the CSV files of the static memory allocation literature have
// them: `id,lower,upper,size`, lifetimes half-open [lower, upper).
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

// Columns in any order, further ones ignored. Errors name the line: a missing
// column, a repeated id, upper <= lower, a negative size, what is no integer.
absl::StatusOr<std::vector<CsvBuffer>> ReadBuffersCsv(absl::string_view text);

// `id,lower,upper,size,offset`, one line per buffer in the order given.
std::string WriteBuffersCsv(const std::vector<CsvBuffer>& buffers,
                            const std::vector<int64_t>& offsets);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_BUFFERS_CSV_H_
