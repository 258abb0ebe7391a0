// Reads the original file again and replaces only the contents of initializers,
// so every name, attribute and opset stays. Tested in
// tests/models/onnx_export_test.cc.
#include "models/onnx/export.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/model_file.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();

absl::Status SystemError(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text)
                                            : absl::UnavailableError(text);
}

absl::Status WriteAll(int fd, const std::string& path,
                      absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return SystemError(path, errno);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : SystemError(path, errno);
}

// Syncs the folder, which makes the rename durable.
void SyncFolder(const std::string& path) {
  const int fd = open(onnx_internal::FolderOf(path).c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

absl::Status WriteAndRename(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".partial");
  const int fd =
      open(temporary.c_str(),
           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return SystemError(temporary, errno);
  absl::Status status = WriteAll(fd, path, bytes);
  if (close(fd) != 0 && status.ok()) status = SystemError(path, errno);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(path, errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  SyncFolder(path);
  return absl::OkStatus();
}

absl::Status Replace(const Tensor& tensor, onnx::TensorProto* proto) {
  LOADLINE_ASSIGN_OR_RETURN(
      DType dtype, onnx_internal::DTypeFromOnnx(
                       proto->data_type(),
                       absl::StrCat("initializer '", proto->name(), "'")));
  const TensorType own{dtype, {proto->dims().begin(), proto->dims().end()}};
  if (own != tensor.type) {
    return absl::InvalidArgumentError(
        absl::StrCat("initializer '", proto->name(), "' is ", own.ToString(),
                     ", not ", tensor.type.ToString()));
  }
  onnx_internal::WriteTensor(tensor, proto);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportTrained(const std::string& original_path,
                           const std::map<std::string, Tensor>& trained,
                           const std::string& out_path) {
  LOADLINE_ASSIGN_OR_RETURN(
      onnx::ModelProto model,
      onnx_internal::ReadModelFile(original_path, kMaxBytes));
  const std::string folder = onnx_internal::FolderOf(original_path);
  std::set<std::string> left;
  for (const auto& [name, tensor] : trained) left.insert(name);
  int64_t budget_bytes = kMaxBytes;
  for (onnx::TensorProto& proto :
       *model.mutable_graph()->mutable_initializer()) {
    auto it = trained.find(proto.name());
    if (it != trained.end()) {
      LOADLINE_RETURN_IF_ERROR(Replace(it->second, &proto));
      left.erase(proto.name());
    } else if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
      LOADLINE_ASSIGN_OR_RETURN(
          Tensor tensor,
          onnx_internal::ReadTensor(proto, folder, &budget_bytes));
      onnx_internal::WriteTensor(tensor, &proto);
    }
  }
  if (!left.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        original_path, " has no initializer named '", *left.begin(), "'"));
  }
  if (model.ByteSizeLong() > static_cast<size_t>(kMaxBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the trained model needs ", model.ByteSizeLong(),
        " bytes, more than the 2 GiB that one ONNX file can hold"));
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return absl::InternalError("protobuf cannot write the model");
  }
  return WriteAndRename(out_path, bytes);
}

}  // namespace loadline::models
