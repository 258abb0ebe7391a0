// Tested in tests/executor/train/data_digest_test.cc.
#include "executor/train/data_digest.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/sha256.h"

namespace loadline::executor {
namespace {

// A tenth of a second of hashing.
constexpr int64_t kWholeBytes = int64_t{16} << 20;
// Each may be a seek of a disk.
constexpr int64_t kMostSamples = 256;

int64_t SamplesOf(int64_t rows, int64_t row_bytes) {
  if (rows == 1 || rows * row_bytes <= kWholeBytes) return rows;
  return std::clamp<int64_t>(kWholeBytes / row_bytes, 2,
                             std::min(rows, kMostSamples));
}

std::string HashOf(const Column& column, int64_t examples) {
  const int64_t rows = column.rows(examples);
  planner::Sha256 hash;
  std::vector<std::byte> row(static_cast<size_t>(column.row_bytes));
  const int64_t samples = SamplesOf(rows, column.row_bytes);
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t at = samples == rows ? i : i * (rows - 1) / (samples - 1);
    if (!ReadRows(column, at, 1, row.data()).ok()) continue;
    hash.Add(row.data(), row.size());
  }
  return hash.HexDigest().substr(0, 16);
}

}  // namespace

std::string DigestOfData(const DataSet& data) {
  std::string digest = absl::StrCat(data.examples, " examples\n");
  for (const Column& column : data.columns) {
    absl::StrAppend(&digest, HashOf(column, data.examples), " ", column.name,
                    "\n");
  }
  return digest;
}

std::string OtherData(absl::string_view then, absl::string_view now) {
  const std::vector<std::string> there =
      absl::StrSplit(then, '\n', absl::SkipEmpty());
  const std::vector<std::string> here =
      absl::StrSplit(now, '\n', absl::SkipEmpty());
  if (there.empty() || here.empty() || there == here) return "";
  if (there[0] != here[0]) {
    return absl::StrCat(there[0], ", now ",
                        here[0].substr(0, here[0].find(' ')));
  }
  std::vector<std::string> names;
  for (size_t i = 1; i < here.size(); ++i) {
    if (std::find(there.begin(), there.end(), here[i]) != there.end()) continue;
    names.push_back(
        absl::StrCat("'", here[i].substr(here[i].find(' ') + 1), "'"));
  }
  // Arrays that are not read any more do not matter.
  return names.empty()
             ? ""
             : absl::StrCat("other numbers in ", absl::StrJoin(names, ", "));
}

}  // namespace loadline::executor
