// Tested in tests/models/onnx_export_test.cc.
#include "models/onnx/write_model.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/str_cat.h"
#include "planner/base/atomic_file.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Bytes of protobuf on their way to a file; keeps the first error.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(planner::AtomicFile* file) : file_(file) {}
  bool Write(const void* data, int bytes) override {
    status_.Update(file_->Write(data, static_cast<size_t>(bytes)));
    return status_.ok();
  }
  const absl::Status& status() const { return status_; }

 private:
  planner::AtomicFile* file_;
  absl::Status status_;
};

}  // namespace

absl::Status WriteModel(const onnx::ModelProto& model,
                        const std::string& path) {
  if (model.ByteSizeLong() > static_cast<size_t>(kMaxFileBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the trained model needs ", model.ByteSizeLong(),
        " bytes, more than the 2 GiB that one ONNX file can hold"));
  }
  LOADLINE_ASSIGN_OR_RETURN(const auto file, planner::AtomicFile::Create(path));
  FileStream stream(file.get());
  google::protobuf::io::CopyingOutputStreamAdaptor buffered(&stream);
  const bool written =
      model.SerializeToZeroCopyStream(&buffered) && buffered.Flush();
  LOADLINE_RETURN_IF_ERROR(stream.status());
  if (!written) return absl::InternalError("protobuf cannot write the model");
  return file->Commit();
}

}  // namespace loadline::models::onnx_internal
