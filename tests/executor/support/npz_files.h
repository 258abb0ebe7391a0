// NumPy's files, as tests want them.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_

#include <string>
#include <utility>
#include <vector>

namespace loadline::executor {

// The bytes of an .npy file: `descr` such as "<f4", `shape` such as "(2, 2)".
std::string NpyFile(const std::string& descr, const std::string& shape,
                    const std::string& data);

// Writes an archive with (name, contents) entries; returns its path.
std::string WriteZip(
    const std::string& file,
    const std::vector<std::pair<std::string, std::string>>& entries,
    bool compress);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_NPZ_FILES_H_
