// CUDA's shared libraries, opened only when a GPU is used: the program also
// starts on machines without them. Opening by name at run time, instead of by a
// path fixed at link time, lets one program use a toolkit or the wheels of a
// Python environment.
#ifndef LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_
#define LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace loadline::executor::cuda {

// Value of an environment variable; "" if it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string ProcessEnvironment(const char* name);

// Existing folders to search, in order: those of LOADLINE_CUDA_LIBRARIES
// (separated by colons), toolkits (CUDA_HOME, CUDA_PATH, /usr/local/cuda), and
// nvidia/*/lib in Python's packages (VIRTUAL_ENV, the user's, the system's).
// `root`: prefix of the system's absolute paths, for tests.
std::vector<std::string> LibraryFolders(const Environment& environment,
                                        const std::string& root = "");

// Opens the library `name` ("libcublasLt.so.13") from the loader's own search
// path or one of the folders. Never closed. Unavailable: not found; lists all
// that was tried.
absl::StatusOr<void*> OpenLibrary(const std::string& name,
                                  const std::vector<std::string>& folders);

// Looks up a function. Unavailable: the library is of another version.
absl::StatusOr<void*> FindFunction(void* library,
                                   const std::string& library_name,
                                   const char* function);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_
