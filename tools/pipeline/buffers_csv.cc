// A strict parser of a small format. Tested by
// tests/tools/pipeline/buffers_csv_test.cc.
#include "tools/pipeline/buffers_csv.h"

#include <array>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

enum Column { kId, kLower, kUpper, kSize, kColumns };
constexpr std::array<const char*, kColumns> kNames = {"id", "lower", "upper",
                                                      "size"};

absl::Status LineError(size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

absl::StatusOr<std::array<size_t, kColumns>> FindColumns(
    const std::vector<std::string>& header) {
  std::array<size_t, kColumns> columns;
  for (int c = 0; c < kColumns; ++c) {
    columns[c] = header.size();
    for (size_t i = 0; i < header.size(); ++i) {
      if (header[i] == kNames[c]) columns[c] = i;
    }
    if (columns[c] == header.size()) {
      return LineError(1, absl::StrCat("no column '", kNames[c], "'"));
    }
  }
  return columns;
}

absl::Status ReadNumber(size_t line, const char* name, const std::string& text,
                        int64_t* number) {
  if (absl::SimpleAtoi(text, number)) return absl::OkStatus();
  return LineError(line,
                   absl::StrCat(name, " '", text, "' is not a whole number"));
}

}  // namespace

absl::StatusOr<std::vector<CsvBuffer>> ReadBuffersCsv(absl::string_view text) {
  std::vector<CsvBuffer> buffers;
  std::set<std::string> ids;
  std::array<size_t, kColumns> columns = {};
  size_t line = 0;
  size_t width = 0;
  for (absl::string_view row : absl::StrSplit(text, '\n')) {
    ++line;
    row = absl::StripAsciiWhitespace(row);
    if (row.empty()) continue;
    std::vector<std::string> cells = absl::StrSplit(row, ',');
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    if (width == 0) {
      LOADLINE_ASSIGN_OR_RETURN(columns, FindColumns(cells));
      width = cells.size();
      continue;
    }
    if (cells.size() != width) {
      return LineError(line, absl::StrCat("expected ", width, " cells, found ",
                                          cells.size()));
    }
    CsvBuffer buffer;
    buffer.id = cells[columns[kId]];
    LOADLINE_RETURN_IF_ERROR(
        ReadNumber(line, "lower", cells[columns[kLower]], &buffer.lower));
    LOADLINE_RETURN_IF_ERROR(
        ReadNumber(line, "upper", cells[columns[kUpper]], &buffer.upper));
    LOADLINE_RETURN_IF_ERROR(
        ReadNumber(line, "size", cells[columns[kSize]], &buffer.size));
    if (buffer.upper <= buffer.lower) {
      return LineError(line, "upper must be above lower");
    }
    if (buffer.size < 0) return LineError(line, "size must not be negative");
    if (!ids.insert(buffer.id).second) {
      return LineError(line, absl::StrCat("id '", buffer.id, "' again"));
    }
    buffers.push_back(buffer);
  }
  if (width == 0) return LineError(1, "the file is empty");
  return buffers;
}

std::string WriteBuffersCsv(const std::vector<CsvBuffer>& buffers,
                            const std::vector<int64_t>& offsets) {
  std::string out = "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const CsvBuffer& b = buffers[i];
    absl::StrAppend(&out, b.id, ",", b.lower, ",", b.upper, ",", b.size, ",",
                    offsets[i], "\n");
  }
  return out;
}

}  // namespace loadline::tools
