// The files of a model as they were when a run began.
#ifndef LOADLINE_TOOLS_PIPELINE_MODEL_FILES_H_
#define LOADLINE_TOOLS_PIPELINE_MODEL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace loadline::tools {

// A run reads its model at its begin, and once more at its end, because the
// trained model is the file with other weights. In between hours may pass, in
// which somebody exports the model anew.
class ModelFiles {
 public:
  // The model and the files that hold its external data. Errors: those of
  // models::ExternalDataFiles.
  static absl::StatusOr<ModelFiles> Of(const std::string& model);

  // FailedPrecondition, naming the file, if one is gone or may have other
  // contents: of another size, or written since then. A model of at most
  // 64 MiB that was written with the same contents is unchanged.
  absl::Status CheckUnchanged() const;

 private:
  struct File {
    std::string path;
    int64_t bytes = 0;
    int64_t written_ns = 0;  // the system's time of the last write
    std::string sha256;      // empty: not taken
  };
  static absl::StatusOr<File> Look(const std::string& path);

  std::vector<File> files_;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MODEL_FILES_H_
