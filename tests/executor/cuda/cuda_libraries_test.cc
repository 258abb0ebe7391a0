// Where CUDA's shared libraries are searched, and the error if they are not
// found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "executor/cuda/libraries.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using cuda::FindFunction;
using cuda::LibraryFolders;
using cuda::OpenLibrary;
using testing::HasSubstr;

TEST(LibraryFolders, AreNamedOnesThenToolkitsThenWheels) {
  const std::string root = TemporaryPath("libraries");
  const std::string wheels = root + "/venv/lib/python3.11/site-packages/nvidia";
  for (const std::string& folder :
       {root + "/mine", root + "/toolkit/lib64", root + "/usr/local/cuda/lib64",
        wheels + "/cublas/lib", wheels + "/cudnn/lib"}) {
    std::filesystem::create_directories(folder);
  }
  const std::map<std::string, std::string> variables = {
      {"LOADLINE_CUDA_LIBRARIES", root + "/mine:" + root + "/missing"},
      {"CUDA_HOME", root + "/toolkit"},
      {"VIRTUAL_ENV", root + "/venv"}};
  const auto environment = [&](const char* name) -> std::string {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
  EXPECT_EQ(LibraryFolders(environment, root),
            (std::vector<std::string>{root + "/mine", root + "/toolkit/lib64",
                                      root + "/usr/local/cuda/lib64",
                                      wheels + "/cublas/lib",
                                      wheels + "/cudnn/lib"}));
}

TEST(OpenLibrary, FindsWhatTheLoaderFindsAndItsFunctions) {
  const auto library = OpenLibrary("libm.so.6", {});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_TRUE(FindFunction(*library, "libm.so.6", "cos").ok());
  EXPECT_THAT(FindFunction(*library, "libm.so.6", "no_such_function")
                  .status()
                  .message(),
              HasSubstr("libm.so.6 lacks no_such_function"));
}

TEST(OpenLibrary, SaysWhereItLookedAndWhatWasWrongThere) {
  const std::string folder = TemporaryPath("broken_library");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libloadline-none.so.1") << "no library";
  const absl::Status status =
      OpenLibrary("libloadline-none.so.1", {folder}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder));
  EXPECT_THAT(std::string(status.message()), HasSubstr("file too short"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("LOADLINE_CUDA_LIBRARIES"));
}

}  // namespace
}  // namespace loadline::executor
