// The file is untrusted: each size is compared with the bytes that really exist
// before memory is allocated for it. External data must resolve, symbolic links
// included, to a path within the model's folder. Tested in
// tests/models/onnx_hostile_test.cc.
#include "models/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/onnx/constant_weights.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int kMaxRank = 16;
// Limit on nested subgraphs and functions; real models stay far below.
constexpr int kMaxProtobufDepth = 64;

struct OnnxType {
  int32_t onnx;
  DType dtype;
};
constexpr OnnxType kTypes[] = {
    {onnx::TensorProto::FLOAT, DType::kF32},
    {onnx::TensorProto::DOUBLE, DType::kF64},
    {onnx::TensorProto::FLOAT16, DType::kF16},
    {onnx::TensorProto::BFLOAT16, DType::kBF16},
    {onnx::TensorProto::INT64, DType::kI64},
    {onnx::TensorProto::INT32, DType::kI32},
    {onnx::TensorProto::UINT8, DType::kU8},
    {onnx::TensorProto::INT8, DType::kI8},
    {onnx::TensorProto::BOOL, DType::kBool},
};

absl::Status Bad(const onnx::TensorProto& proto, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor '", proto.name(), "': ", what));
}

// The opened file with its size; the caller closes it.
struct OpenFile {
  int fd = -1;
  int64_t bytes = 0;
};

absl::StatusOr<OpenFile> OpenRegularFile(const std::string& path, int flags) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (fd < 0) {
    const std::string text = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text)
                           : absl::InvalidArgumentError(text);
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file"));
  }
  return OpenFile{fd, static_cast<int64_t>(info.st_size)};
}

// Location of a tensor's external data as the file claims it.
struct ExternalClaim {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

absl::StatusOr<ExternalClaim> ReadClaim(const onnx::TensorProto& proto) {
  ExternalClaim claim;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      claim.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t number = 0;
      if (!absl::SimpleAtoi(entry.value(), &number) || number < 0) {
        return Bad(proto, absl::StrCat("external data has a bad ", entry.key(),
                                       " '", entry.value(), "'"));
      }
      if (entry.key() == "offset") {
        claim.offset = number;
      } else {
        claim.length = number;
      }
    }
  }
  return claim;
}

// The real path of `location`; an error unless it is inside `folder`.
absl::StatusOr<std::string> ResolveInside(const onnx::TensorProto& proto,
                                          const std::string& folder,
                                          const std::string& location) {
  const absl::Status outside = Bad(
      proto,
      absl::StrCat("external data '", location, "' leaves the model's folder"));
  if (location.empty() || location.find('\0') != std::string::npos) {
    return Bad(proto, "external data has no usable location");
  }
  if (location[0] == '/') return outside;
  for (absl::string_view part : absl::StrSplit(location, '/')) {
    if (part == "..") return outside;
  }
  std::error_code error;
  const std::filesystem::path base = std::filesystem::canonical(folder, error);
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": no folder"));
  const std::filesystem::path real =
      std::filesystem::canonical(base / location, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat("tensor '", proto.name(),
                                            "': external data file '", location,
                                            "' is missing beside the model"));
  }
  const std::string prefix =
      base == "/" ? std::string("/") : base.string() + "/";
  if (real.string().compare(0, prefix.size(), prefix) != 0) return outside;
  return real.string();
}

absl::StatusOr<Tensor> ReadExternal(const onnx::TensorProto& proto,
                                    TensorType type,
                                    const std::string& folder) {
  if (folder.empty()) return Bad(proto, "external data is not allowed here");
  LOADLINE_ASSIGN_OR_RETURN(ExternalClaim claim, ReadClaim(proto));
  LOADLINE_ASSIGN_OR_RETURN(std::string path,
                            ResolveInside(proto, folder, claim.location));
  const int64_t bytes = type.bytes();
  if (claim.length.value_or(bytes) != bytes) {
    return Bad(proto, absl::StrCat("external data of ", *claim.length,
                                   " bytes for ", type.ToString()));
  }
  LOADLINE_ASSIGN_OR_RETURN(OpenFile file, OpenRegularFile(path, O_NOFOLLOW));
  auto closer = absl::MakeCleanup([&file] { close(file.fd); });
  if (claim.offset > file.bytes || bytes > file.bytes - claim.offset) {
    return Bad(proto, absl::StrCat("external data at ", claim.offset, " + ",
                                   bytes, " bytes lies beyond the ", file.bytes,
                                   " bytes of ", claim.location));
  }
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file.fd, data.data() + done, static_cast<size_t>(bytes - done),
              claim.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Bad(proto, "external data could not be read");
    done += got;
  }
  return Tensor{std::move(type), std::make_shared<const std::vector<std::byte>>(
                                     std::move(data))};
}

// Copies a repeated field element by element into T.
template <typename T, typename Field>
absl::StatusOr<Tensor> FromField(const onnx::TensorProto& proto,
                                 TensorType type, const Field& field) {
  if (field.size() != type.elements()) {
    return Bad(proto,
               absl::StrCat(field.size(), " elements for ", type.ToString()));
  }
  std::vector<T> values(static_cast<size_t>(field.size()));
  for (int i = 0; i < field.size(); ++i) {
    values[static_cast<size_t>(i)] = static_cast<T>(field.Get(i));
  }
  return MakeTensor(std::move(type), values.data());
}

// The fields that hold contents, and bytes in another file: a tensor has one.
int ContentsOf(const onnx::TensorProto& proto) {
  const bool held[] = {proto.data_location() == onnx::TensorProto::EXTERNAL,
                       !proto.raw_data().empty(),
                       proto.float_data_size() > 0,
                       proto.double_data_size() > 0,
                       proto.int32_data_size() > 0,
                       proto.int64_data_size() > 0,
                       proto.uint64_data_size() > 0,
                       proto.string_data_size() > 0};
  return static_cast<int>(std::count(std::begin(held), std::end(held), true));
}

absl::StatusOr<Tensor> ReadTyped(const onnx::TensorProto& proto,
                                 TensorType type) {
  switch (type.dtype) {
    case DType::kF32:
      return FromField<float>(proto, std::move(type), proto.float_data());
    case DType::kF64:
      return FromField<double>(proto, std::move(type), proto.double_data());
    case DType::kI64:
      return FromField<int64_t>(proto, std::move(type), proto.int64_data());
    case DType::kI32:
      return FromField<int32_t>(proto, std::move(type), proto.int32_data());
    case DType::kF16:
    case DType::kBF16:
      return FromField<uint16_t>(proto, std::move(type), proto.int32_data());
    case DType::kI8:
      return FromField<int8_t>(proto, std::move(type), proto.int32_data());
    case DType::kU8:
      return FromField<uint8_t>(proto, std::move(type), proto.int32_data());
    case DType::kBool: {
      LOADLINE_ASSIGN_OR_RETURN(
          Tensor raw, FromField<int32_t>(proto, {DType::kI32, type.dims},
                                         proto.int32_data()));
      std::vector<uint8_t> bits;
      for (int32_t v : raw.as<int32_t>()) bits.push_back(v != 0);
      return MakeTensor(std::move(type), bits.data());
    }
  }
  return Bad(proto, "has an element type that is not supported");
}

absl::StatusOr<Tensor> ReadRaw(const onnx::TensorProto& proto,
                               TensorType type) {
  if (static_cast<int64_t>(proto.raw_data().size()) != type.bytes()) {
    return Bad(proto, absl::StrCat(proto.raw_data().size(), " bytes for ",
                                   type.ToString()));
  }
  if (type.dtype != DType::kBool) {
    return MakeTensor(std::move(type), proto.raw_data().data());
  }
  std::vector<uint8_t> bits;
  for (char c : proto.raw_data()) bits.push_back(c != 0);
  return MakeTensor(std::move(type), bits.data());
}

absl::StatusOr<onnx::ModelProto> ParseStream(
    google::protobuf::io::ZeroCopyInputStream* stream, int64_t bytes) {
  if (bytes > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        "the model is larger than 2 GiB, protobuf's limit; export it with "
        "external data");
  }
  google::protobuf::io::CodedInputStream input(stream);
  input.SetRecursionLimit(kMaxProtobufDepth);
  input.SetTotalBytesLimit(static_cast<int>(bytes));
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return absl::InvalidArgumentError(
        "not an ONNX model, or a damaged one (protobuf cannot parse it)");
  }
  MakeInitializersOfConstants(&model);
  return model;
}

}  // namespace

absl::StatusOr<onnx::ModelProto> ParseModel(absl::string_view bytes) {
  google::protobuf::io::ArrayInputStream array(
      bytes.data(), static_cast<int>(std::min<size_t>(
                        bytes.size(), std::numeric_limits<int>::max())));
  return ParseStream(&array, static_cast<int64_t>(bytes.size()));
}

absl::StatusOr<onnx::ModelProto> ReadModelFile(const std::string& path,
                                               int64_t max_bytes) {
  LOADLINE_ASSIGN_OR_RETURN(OpenFile file, OpenRegularFile(path, 0));
  auto closer = absl::MakeCleanup([&file] { close(file.fd); });
  if (file.bytes > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": ", file.bytes, " bytes, more than the limit of ", max_bytes));
  }
  if (file.bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": empty file"));
  }
  // Straight from the file, so that its bytes are in memory once.
  google::protobuf::io::FileInputStream stream(file.fd);
  absl::StatusOr<onnx::ModelProto> model = ParseStream(&stream, file.bytes);
  if (!model.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", model.status().message()));
  }
  return model;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::StatusOr<DType> DTypeFromOnnx(int32_t onnx_type, absl::string_view what) {
  for (const OnnxType& type : kTypes) {
    if (type.onnx == onnx_type) return type.dtype;
  }
  const std::string name =
      onnx::TensorProto::DataType_IsValid(onnx_type)
          ? onnx::TensorProto::DataType_Name(
                static_cast<onnx::TensorProto::DataType>(onnx_type))
          : absl::StrCat("number ", onnx_type);
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has element type ", name, ", which is not supported"));
}

int32_t DTypeToOnnx(DType dtype) {
  for (const OnnxType& type : kTypes) {
    if (type.dtype == dtype) return type.onnx;
  }
  return onnx::TensorProto::UNDEFINED;
}

absl::StatusOr<TensorType> TypeOfTensor(const onnx::TensorProto& proto) {
  if (proto.has_segment()) return Bad(proto, "segments are not supported");
  if (proto.dims_size() > kMaxRank) return Bad(proto, "has too many axes");
  LOADLINE_ASSIGN_OR_RETURN(
      DType dtype, DTypeFromOnnx(proto.data_type(),
                                 absl::StrCat("tensor '", proto.name(), "'")));
  absl::StatusOr<TensorType> type =
      MakeTensorType(dtype, {proto.dims().begin(), proto.dims().end()});
  if (!type.ok()) return Bad(proto, std::string(type.status().message()));
  return type;
}

absl::StatusOr<Tensor> ReadTensor(const onnx::TensorProto& proto,
                                  const std::string& folder,
                                  int64_t* budget_bytes) {
  absl::StatusOr<TensorType> type = TypeOfTensor(proto);
  if (!type.ok()) return type.status();
  if (type->bytes() > *budget_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor '", proto.name(), "' of ", type->bytes(),
                     " bytes exceeds the limit on the model's size"));
  }
  *budget_bytes -= type->bytes();
  if (ContentsOf(proto) > 1) {
    return Bad(proto, "has its contents twice, in different fields");
  }
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return ReadExternal(proto, *std::move(type), folder);
  }
  if (proto.has_raw_data()) return ReadRaw(proto, *std::move(type));
  return ReadTyped(proto, *std::move(type));
}

void WriteTensor(const Tensor& tensor, onnx::TensorProto* proto) {
  proto->clear_float_data();
  proto->clear_int32_data();
  proto->clear_int64_data();
  proto->clear_double_data();
  proto->clear_uint64_data();
  proto->clear_external_data();
  proto->clear_data_location();
  proto->set_raw_data(tensor.data->data(), tensor.data->size());
}

std::vector<std::string> ExternalDataPaths(const onnx::ModelProto& model,
                                           const std::string& folder) {
  std::set<std::string> paths;
  const auto add = [&](const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    const auto claim = ReadClaim(tensor);
    if (!claim.ok()) return;
    const auto path = ResolveInside(tensor, folder, claim->location);
    if (path.ok()) paths.insert(*path);
  };
  // Subgraphs wait here: a file may nest them deeply.
  std::vector<const onnx::GraphProto*> graphs = {&model.graph()};
  const auto visit_nodes = [&](const auto& nodes) {
    for (const onnx::NodeProto& node : nodes) {
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_t()) add(attribute.t());
        if (attribute.has_g()) graphs.push_back(&attribute.g());
        for (const auto& tensor : attribute.tensors()) add(tensor);
        for (const auto& graph : attribute.graphs()) graphs.push_back(&graph);
      }
    }
  };
  for (const auto& function : model.functions()) visit_nodes(function.node());
  while (!graphs.empty()) {
    const onnx::GraphProto& graph = *graphs.back();
    graphs.pop_back();
    for (const auto& tensor : graph.initializer()) add(tensor);
    visit_nodes(graph.node());
  }
  return {paths.begin(), paths.end()};
}

}  // namespace loadline::models::onnx_internal
