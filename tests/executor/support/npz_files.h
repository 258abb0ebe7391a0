// Archives of arrays, as NumPy writes them.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/executor/support/npy_bytes.h"

namespace loadline::executor {

// Writes an archive with (name, contents) entries; returns its path.
std::string WriteZip(
    const std::string& file,
    const std::vector<std::pair<std::string, std::string>>& entries,
    bool compress);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_
