// CUDA's shared libraries, opened when a GPU is asked for and not before: a
// program that has them in it starts where they are not. Opening by name at
// run time, and not a path fixed by the linker, lets one program use a toolkit,
// or the wheels of a Python environment, whichever is there.
#ifndef LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_
#define LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace loadline::executor::cuda {

// What an environment variable holds; "" where it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string ProcessEnvironment(const char* name);

// Folders to look in, in order, that exist: those of LOADLINE_CUDA_LIBRARIES
// (separated by colons), toolkits (CUDA_HOME, CUDA_PATH, /usr/local/cuda), and
// nvidia/*/lib in the packages of Python (VIRTUAL_ENV, the user's, the
// system's). `root` stands before absolute paths of the system, for tests.
std::vector<std::string> LibraryFolders(const Environment& environment,
                                        const std::string& root = "");

// The library `name` ("libcublasLt.so.13"), from where the loader itself looks
// or from one of the folders. Never closed. Unavailable, with all that was
// tried, where it is nowhere.
absl::StatusOr<void*> OpenLibrary(const std::string& name,
                                  const std::vector<std::string>& folders);

// A function of it. Unavailable: the library is of another version.
absl::StatusOr<void*> FindFunction(void* library,
                                   const std::string& library_name,
                                   const char* function);

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LIBRARIES_H_
