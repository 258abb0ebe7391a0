// Writer and reader share only the table of type names: the reader checks
// everything and assumes nothing about the writer. Tested in
// tests/executor/train/checkpoint_test.cc.
#include "executor/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "planner/base/atomic_file.h"
#include "planner/base/check.h"
#include "planner/base/read_file.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using Json = nlohmann::json;  // finds keys by search, not one by one
using models::DType;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

constexpr struct {
  const char* name;
  DType dtype;
} kTypes[] = {
    {"F64", DType::kF64},   {"F32", DType::kF32}, {"F16", DType::kF16},
    {"BF16", DType::kBF16}, {"I64", DType::kI64}, {"I32", DType::kI32},
    {"I8", DType::kI8},     {"U8", DType::kU8},   {"BOOL", DType::kBool}};

const char* TypeName(DType dtype) {
  for (const auto& t : kTypes) {
    if (t.dtype == dtype) return t.name;
  }
  LOADLINE_CHECK(false);
  return "";
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", what));
}

std::optional<int64_t> AsCount(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto n = json.get<uint64_t>();
  if (n > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(n);
}

struct Entry {
  int64_t begin = 0;
  int64_t end = 0;
  std::string name;
  models::TensorType type;
};

absl::StatusOr<Entry> ReadEntry(const std::string& name, const Json& json) {
  const auto bad = [&](absl::string_view what) {
    return Bad(absl::StrCat("tensor '", name, "' ", what));
  };
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
      !json.contains("shape") || !json.contains("data_offsets")) {
    return bad("lacks dtype, shape or data_offsets");
  }
  if (!json["dtype"].is_string()) return bad("has no dtype");
  const auto dtype_name = json["dtype"].get<std::string>();
  const auto* known =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const auto& t) { return dtype_name == t.name; });
  if (known == std::end(kTypes)) {
    return bad(absl::StrCat("has the unknown dtype '", dtype_name, "'"));
  }
  std::vector<int64_t> dims;
  if (!json["shape"].is_array()) return bad("has no shape");
  for (const Json& dim : json["shape"]) {
    const std::optional<int64_t> n = AsCount(dim);
    if (!n.has_value()) return bad("has a bad shape");
    dims.push_back(*n);
  }
  const absl::StatusOr<models::TensorType> type =
      models::MakeTensorType(known->dtype, std::move(dims));
  if (!type.ok()) return bad("has a shape beyond all memory");
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) return bad("has no offsets");
  const std::optional<int64_t> begin = AsCount(offsets[0]);
  const std::optional<int64_t> end = AsCount(offsets[1]);
  if (!begin.has_value() || !end.has_value() || *end < *begin ||
      *end - *begin != type->bytes()) {
    return bad(absl::StrCat("has offsets that do not hold ", type->ToString()));
  }
  return Entry{*begin, *end, name, *type};
}

absl::Status ReadMetadata(const Json& json, SafetensorsFile* file) {
  if (!json.is_object()) return Bad("__metadata__ is no object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Bad("__metadata__ holds more than text");
    file->metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Whether a name of the outermost object comes twice: the format forbids it,
// and nlohmann's tree keeps the last. Its parser with a callback would say so
// too, but it looks through all names at the end of each tensor's object.
class DuplicateFinder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(std::string& name) override {
    return depth_ > 1 || seen_.insert(name).second;
  }
  bool parse_error(size_t, const std::string&,
                   const Json::exception&) override {
    return false;
  }

 private:
  int64_t depth_ = 0;
  std::set<std::string> seen_;
};

absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  DuplicateFinder finder;
  if (!Json::sax_parse(text.begin(), text.end(), &finder)) {
    return Bad("the header is not JSON, or names a tensor twice");
  }
  Json header = Json::parse(text.begin(), text.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad("the header is no JSON object");
  return header;
}

// Of a file that is written where nothing can be changed later.
constexpr char kNoHash[] = "0000000000000000";

// Each step is a bijection of the hash and of the word, so one altered word
// always alters the result. Fast enough that saving is not slower: SHA-256
// takes longer than a disk does.
uint64_t HashOn(uint64_t hash, const void* data, size_t bytes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    uint64_t word = 0;
    const size_t size = std::min(bytes, sizeof(word));
    std::memcpy(&word, at, size);
    hash = std::rotl(hash ^ word, 29) * kOdd;
    at += size;
    bytes -= size;
  }
  return hash;
}

std::string HashText(uint64_t hash) {
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

// Where the header has the digits of the hash. A quote within another string is
// escaped, so only a key is found.
std::optional<size_t> HashAt(absl::string_view header) {
  const std::string key = absl::StrCat("\"", kContentHash, "\":\"");
  const size_t at = header.find(key);
  if (at == absl::string_view::npos) return std::nullopt;
  return at + key.size();
}

// `entries`: in the order of the data.
absl::Status CheckHash(const SafetensorsFile& file, absl::string_view header,
                       const std::vector<Entry>& entries,
                       absl::string_view data) {
  const auto found = file.metadata.find(kContentHash);
  if (found == file.metadata.end() || found->second == kNoHash) {
    return absl::OkStatus();
  }
  std::string text(header);
  const std::optional<size_t> at = HashAt(text);
  if (at.has_value() && *at + sizeof(kNoHash) <= text.size()) {
    text.replace(*at, sizeof(kNoHash) - 1, kNoHash);
  }
  uint64_t hash = HashOn(0, text.data(), text.size());
  for (const Entry& entry : entries) {
    hash = HashOn(hash, data.data() + entry.begin,
                  static_cast<size_t>(entry.end - entry.begin));
  }
  if (found->second == HashText(hash)) return absl::OkStatus();
  return Bad(
      "the file is damaged: its bytes are not those that were written (hash in "
      "its metadata)");
}

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const std::vector<NamedType>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<absl::Status(size_t, absl::Span<std::byte>)>&
        contents) {
  // In the order of the data, as people expect to see it.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = metadata;
  const bool hashes = metadata.count(kContentHash) > 0;
  if (hashes) header["__metadata__"][kContentHash] = kNoHash;
  int64_t offset = 0;
  int64_t largest = 0;
  for (const NamedType& tensor : tensors) {
    const int64_t bytes = tensor.type.bytes();
    header[tensor.name] = {{"dtype", TypeName(tensor.type.dtype)},
                           {"shape", tensor.type.dims},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
    largest = std::max(largest, bytes);
  }
  std::string text =
      header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) {
    length[i] =
        static_cast<uint8_t>(static_cast<uint64_t>(text.size()) >> (8 * i));
  }

  LOADLINE_ASSIGN_OR_RETURN(const std::unique_ptr<planner::AtomicFile> file,
                            planner::AtomicFile::Create(path));
  LOADLINE_RETURN_IF_ERROR(file->Write(length, sizeof(length)));
  LOADLINE_RETURN_IF_ERROR(file->Write(text.data(), text.size()));
  uint64_t hash = HashOn(0, text.data(), text.size());
  std::vector<std::byte> buffer(static_cast<size_t>(largest));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = static_cast<size_t>(tensors[i].type.bytes());
    LOADLINE_RETURN_IF_ERROR(
        contents(i, absl::MakeSpan(buffer).subspan(0, bytes)));
    LOADLINE_RETURN_IF_ERROR(file->Write(buffer.data(), bytes));
    if (hashes) hash = HashOn(hash, buffer.data(), bytes);
  }
  if (hashes && file->can_rewrite()) {
    const std::string digits = HashText(hash);
    LOADLINE_RETURN_IF_ERROR(file->Rewrite(sizeof(length) + *HashAt(text),
                                           digits.data(), digits.size()));
  }
  return file->Commit();
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes) {
  if (bytes.size() < 8) return Bad("shorter than its first field");
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  if (length > kMaxHeaderBytes || length > bytes.size() - 8) {
    return Bad("the header is longer than the file");
  }
  const absl::string_view text = bytes.substr(8, length);
  const absl::string_view data = bytes.substr(8 + length);
  LOADLINE_ASSIGN_OR_RETURN(const Json header, ParseHeader(text));

  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") {
      LOADLINE_RETURN_IF_ERROR(ReadMetadata(json, &file));
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, json));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at || entry.end > static_cast<int64_t>(data.size())) {
      return Bad(absl::StrCat("tensor '", entry.name,
                              "' overlaps another, leaves a gap or lies "
                              "outside the file"));
    }
    at = entry.end;
    const auto* begin = reinterpret_cast<const std::byte*>(data.data());
    file.types[entry.name] = entry.type;
    file.contents[entry.name].assign(begin + entry.begin, begin + entry.end);
  }
  if (at != static_cast<int64_t>(data.size())) {
    return Bad("bytes that belong to no tensor");
  }
  LOADLINE_RETURN_IF_ERROR(CheckHash(file, text, entries, data));
  return file;
}

absl::StatusOr<SafetensorsFile> ReadSafetensors(const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(
      const std::string bytes,
      planner::ReadWholeFile(path, std::numeric_limits<int64_t>::max()));
  absl::StatusOr<SafetensorsFile> file = ParseSafetensors(bytes);
  if (!file.ok()) {
    return absl::Status(
        file.status().code(),
        absl::StrCat(path, ": ", std::string(file.status().message())));
  }
  return file;
}

}  // namespace loadline::executor
