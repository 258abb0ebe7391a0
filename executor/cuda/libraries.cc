// dlopen, with a list of folders. Libraries are opened with RTLD_GLOBAL,
// because cuDNN looks for cuBLASLt by name. Tested in
// tests/executor/cuda/cuda_libraries_test.cc.
#include "executor/cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace loadline::executor::cuda {
namespace {

namespace fs = std::filesystem;

// Sorted subfolders of `folder` whose names begin with `prefix`.
std::vector<fs::path> Children(const fs::path& folder,
                               const std::string& prefix = "") {
  std::vector<fs::path> children;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (absl::StartsWith(it->path().filename().string(), prefix) &&
        it->is_directory(error)) {
      children.push_back(it->path());
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

// `prefix`/lib/python3.X/{site,dist}-packages/nvidia/NAME/lib
void AddPython(const fs::path& prefix, std::vector<std::string>* folders) {
  for (const fs::path& python : Children(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& wheel : Children(python / packages / "nvidia")) {
        folders->push_back(wheel / "lib");
      }
    }
  }
}

}  // namespace

std::string ProcessEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> LibraryFolders(const Environment& environment,
                                        const std::string& root) {
  std::vector<std::string> folders = absl::StrSplit(
      environment("LOADLINE_CUDA_LIBRARIES"), ':', absl::SkipEmpty());
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string toolkit = environment(name);
    if (!toolkit.empty()) folders.push_back(toolkit + "/lib64");
  }
  folders.push_back(root + "/usr/local/cuda/lib64");
  const std::string virtual_env = environment("VIRTUAL_ENV");
  if (!virtual_env.empty()) AddPython(virtual_env, &folders);
  const std::string home = environment("HOME");
  if (!home.empty()) AddPython(home + "/.local", &folders);
  AddPython(root + "/usr/local", &folders);
  AddPython(root + "/usr", &folders);
  folders.erase(std::remove_if(folders.begin(), folders.end(),
                               [](const std::string& folder) {
                                 std::error_code error;
                                 return !fs::is_directory(folder, error);
                               }),
                folders.end());
  return folders;
}

absl::StatusOr<void*> OpenLibrary(const std::string& name,
                                  const std::vector<std::string>& folders) {
  constexpr int kHow = RTLD_NOW | RTLD_GLOBAL;
  void* library = dlopen(name.c_str(), kHow);
  std::string why;
  for (const std::string& folder : folders) {
    if (library != nullptr) break;
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    library = dlopen(path.c_str(), kHow);
    if (library == nullptr) why = absl::StrCat("; ", dlerror());
  }
  if (library != nullptr) return library;
  return absl::UnavailableError(absl::StrCat(
      name, " was not found by the loader nor in ",
      folders.empty() ? "any folder" : absl::StrJoin(folders, ", "), why,
      " (name its folder in LOADLINE_CUDA_LIBRARIES, or start in a Python "
      "environment that has NVIDIA's wheels)"));
}

absl::StatusOr<void*> FindFunction(void* library,
                                   const std::string& library_name,
                                   const char* function) {
  void* found = dlsym(library, function);
  if (found != nullptr) return found;
  return absl::UnavailableError(
      absl::StrCat(library_name, " lacks ", function,
                   ": it is of another version than this build wants"));
}

}  // namespace loadline::executor::cuda
