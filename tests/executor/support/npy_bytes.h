// An array as NumPy writes it.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_NPY_BYTES_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_NPY_BYTES_H_

#include <string>

namespace loadline::executor {

// The bytes of an .npy file: `descr` such as "<f4", `shape` such as "(2, 2)".
std::string NpyFile(const std::string& descr, const std::string& shape,
                    const std::string& data);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_NPY_BYTES_H_
