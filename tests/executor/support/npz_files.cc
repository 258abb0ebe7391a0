#include "tests/executor/support/npz_files.h"

#include <gtest/gtest.h>
#include <zip.h>

#include "tests/executor/support/toy.h"

namespace loadline::executor {

std::string WriteZip(
    const std::string& file,
    const std::vector<std::pair<std::string, std::string>>& entries,
    bool compress) {
  const std::string path = TemporaryPath(file);
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  EXPECT_NE(archive, nullptr);
  for (const auto& [name, contents] : entries) {
    zip_source_t* source =
        zip_source_buffer(archive, contents.data(), contents.size(), 0);
    const zip_int64_t index =
        zip_file_add(archive, name.c_str(), source, ZIP_FL_OVERWRITE);
    EXPECT_GE(index, 0);
    zip_set_file_compression(archive, index,
                             compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  return path;
}

}  // namespace loadline::executor
