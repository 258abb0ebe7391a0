// Reading a Graph's text form, line by line. Ids may come in any order, so
// values are collected by id and checked to be 0 to n-1 at the end; VerifyGraph
// then checks what they mean. Tested in tests/models/text_test.cc.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/text.h"
#include "planner/status_macros.h"

namespace loadline::models {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// What is left of one line. Words end at spaces and punctuation.
class Cursor {
 public:
  explicit Cursor(absl::string_view rest) : rest_(rest) {}

  bool AtEnd() {
    SkipSpaces();
    return rest_.empty();
  }

  // Takes `token` if it comes next.
  bool Take(absl::string_view token) {
    SkipSpaces();
    if (!absl::StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  absl::Status Expect(absl::string_view token) {
    if (Take(token)) return absl::OkStatus();
    return Wrong("expected \"", token, "\" before \"", rest_.substr(0, 20),
                 "\"");
  }

  bool AtString() {
    SkipSpaces();
    return absl::StartsWith(rest_, "\"");
  }

  absl::string_view Word() { return TakeUntil(" ,(){}[]="); }
  // A type holds commas.
  absl::string_view TypeWord() {
    SkipSpaces();
    const size_t close = rest_.find(']');
    const size_t size =
        close == absl::string_view::npos ? rest_.size() : close + 1;
    const absl::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  absl::StatusOr<std::string> String() {
    LOADLINE_RETURN_IF_ERROR(Expect("\""));
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    std::string text;
    if (end >= rest_.size() || !absl::CUnescape(rest_.substr(0, end), &text)) {
      return Wrong("a string does not end or has a wrong escape");
    }
    rest_.remove_prefix(end + 1);
    return text;
  }

  absl::StatusOr<ValueId> Id() {
    if (Take("-")) return kNoValue;
    LOADLINE_RETURN_IF_ERROR(Expect("%"));
    const absl::string_view word = Word();
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0) {
      return Wrong("\"%", word, "\" is no value");
    }
    return ValueId(id);
  }

 private:
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view TakeUntil(absl::string_view ends) {
    SkipSpaces();
    const size_t size = std::min(rest_.find_first_of(ends), rest_.size());
    const absl::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  absl::string_view rest_;
};

absl::StatusOr<TensorType> ReadType(Cursor& cursor) {
  return TensorTypeFromText(cursor.TypeWord());
}

// A comma-separated list up to `close`, whose opening has been taken.
template <typename ReadItem>
absl::Status ReadList(Cursor& cursor, absl::string_view close,
                      ReadItem read_item) {
  if (cursor.Take(close)) return absl::OkStatus();
  do {
    LOADLINE_RETURN_IF_ERROR(read_item());
  } while (cursor.Take(","));
  return cursor.Expect(close);
}

absl::StatusOr<int64_t> ReadInt(absl::string_view word) {
  int64_t number = 0;
  if (absl::SimpleAtoi(word, &number)) return number;
  return Wrong("\"", word, "\" is not an integer");
}

absl::StatusOr<Attribute> ReadAttribute(Cursor& cursor) {
  if (cursor.Take("[")) {
    Ints list;
    LOADLINE_RETURN_IF_ERROR(ReadList(cursor, "]", [&]() -> absl::Status {
      LOADLINE_ASSIGN_OR_RETURN(int64_t number, ReadInt(cursor.Word()));
      list.push_back(number);
      return absl::OkStatus();
    }));
    return Attribute(std::move(list));
  }
  if (cursor.AtString()) {
    LOADLINE_ASSIGN_OR_RETURN(std::string text, cursor.String());
    return Attribute(std::move(text));
  }
  const absl::string_view word = cursor.Word();
  int64_t integer = 0;
  if (absl::SimpleAtoi(word, &integer)) return Attribute(integer);
  double number = 0;
  if (absl::SimpleAtod(word, &number)) return Attribute(number);
  return Wrong("\"", word, "\" is no attribute");
}

// One element of `braces`, appended to `bytes`.
template <typename T>
absl::Status AppendNumber(absl::string_view word, std::string* bytes) {
  T element{};
  if constexpr (std::is_floating_point_v<T>) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number) || !std::isfinite(number) ||
        !std::isfinite(static_cast<T>(number))) {
      return Wrong("\"", word, "\" is not a finite number");
    }
    element = static_cast<T>(number);
  } else {
    LOADLINE_ASSIGN_OR_RETURN(int64_t number, ReadInt(word));
    element = static_cast<T>(number);
    if (static_cast<int64_t>(element) != number) {
      return Wrong("\"", word, "\" is beyond its element type");
    }
  }
  bytes->append(reinterpret_cast<const char*>(&element), sizeof(T));
  return absl::OkStatus();
}

absl::Status AppendElement(DType dtype, absl::string_view word,
                           std::string* bytes) {
  switch (dtype) {
    case DType::kF32:
      return AppendNumber<float>(word, bytes);
    case DType::kF64:
      return AppendNumber<double>(word, bytes);
    case DType::kI64:
      return AppendNumber<int64_t>(word, bytes);
    case DType::kI32:
      return AppendNumber<int32_t>(word, bytes);
    case DType::kU8:
      return AppendNumber<uint8_t>(word, bytes);
    case DType::kI8:
      return AppendNumber<int8_t>(word, bytes);
    case DType::kBool:
    case DType::kF16:
    case DType::kBF16:
      return Wrong("contents of ", DTypeName(dtype), " are written as hex");
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReadContents(Cursor& cursor, const TensorType& type,
                                    const LargeContents& large) {
  std::string bytes;
  if (cursor.Take("hash")) {
    const std::string key(cursor.Word());
    const auto it = large.find(key);
    if (it == large.end()) return Wrong("contents ", key, " are not at hand");
    if (it->second.type != type) {
      return Wrong("contents ", key, " are ", it->second.type.ToString(),
                   ", not ", type.ToString());
    }
    return it->second;
  }
  if (cursor.Take("hex")) {
    LOADLINE_ASSIGN_OR_RETURN(std::string digits, cursor.String());
    for (char digit : digits) {
      if (!absl::ascii_isxdigit(digit)) return Wrong("not a hex digit");
    }
    if (digits.size() % 2 != 0) return Wrong("an odd number of hex digits");
    bytes = absl::HexStringToBytes(digits);
  } else {
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("{"));
    LOADLINE_RETURN_IF_ERROR(ReadList(cursor, "}", [&] {
      return AppendElement(type.dtype, cursor.Word(), &bytes);
    }));
  }
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return Wrong("contents of ", bytes.size(), " bytes, ", type.ToString(),
                 " has ", type.bytes());
  }
  return MakeTensor(type, bytes.data());
}

std::optional<ValueKind> KindFromName(absl::string_view name) {
  if (name == "input") return ValueKind::kInput;
  if (name == "parameter") return ValueKind::kParameter;
  if (name == "state") return ValueKind::kState;
  if (name == "constant") return ValueKind::kConstant;
  return std::nullopt;
}

std::optional<Phase> PhaseFromName(absl::string_view name) {
  if (name == "forward") return Phase::kForward;
  if (name == "loss") return Phase::kLoss;
  if (name == "backward") return Phase::kBackward;
  if (name == "update") return Phase::kUpdate;
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const LargeContents& large) : large_(large) {}

  absl::Status ReadHeader(Cursor cursor) {
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("loadline.graph/1"));
    LOADLINE_ASSIGN_OR_RETURN(graph_.name, cursor.String());
    return AtEnd(cursor);
  }

  absl::Status ReadLine(Cursor cursor) {
    if (cursor.Take("inputs")) return ReadIds(cursor, &graph_.inputs);
    if (cursor.Take("outputs")) return ReadIds(cursor, &graph_.outputs);
    if (cursor.Take("update")) return ReadUpdate(cursor);
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, cursor.Id());
    if (cursor.Take("=")) return ReadSource(cursor, id);
    return ReadNode(cursor, id);
  }

  absl::StatusOr<Graph> Finish() {
    for (auto& [id, value] : values_) {
      if (static_cast<size_t>(id) != graph_.values.size()) {
        return Wrong("value %", graph_.values.size(), " is missing");
      }
      graph_.values.push_back(std::move(value));
    }
    const absl::Status status = VerifyGraph(graph_);
    if (!status.ok()) return absl::InvalidArgumentError(status.message());
    return std::move(graph_);
  }

 private:
  absl::Status AtEnd(Cursor& cursor) {
    return cursor.AtEnd() ? absl::OkStatus()
                          : Wrong("more on the line than belongs there");
  }

  absl::Status Define(ValueId id, Value value) {
    if (id == kNoValue) return Wrong("\"-\" cannot be made");
    const int32_t number = static_cast<int32_t>(id);
    if (!values_.try_emplace(number, std::move(value)).second) {
      return Wrong("value %", number, " is made twice");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> ReadKnownId(Cursor& cursor) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, cursor.Id());
    if (values_.count(static_cast<int32_t>(id)) == 0) {
      return Wrong("value %", static_cast<int32_t>(id), " is not made before");
    }
    return id;
  }

  // %1 = KIND "name" TYPE [contents]
  absl::Status ReadSource(Cursor& cursor, ValueId id) {
    const absl::string_view word = cursor.Word();
    const std::optional<ValueKind> kind = KindFromName(word);
    if (!kind.has_value()) return Wrong("\"", word, "\" is no kind of value");
    Value value;
    value.kind = *kind;
    LOADLINE_ASSIGN_OR_RETURN(value.name, cursor.String());
    LOADLINE_ASSIGN_OR_RETURN(value.type, ReadType(cursor));
    if (*kind != ValueKind::kInput) {
      LOADLINE_ASSIGN_OR_RETURN(value.initial,
                                ReadContents(cursor, value.type, large_));
    }
    LOADLINE_RETURN_IF_ERROR(AtEnd(cursor));
    return Define(id, std::move(value));
  }

  // %1 "name" TYPE, ... = OP "name" (inputs) {attributes} PHASE
  absl::Status ReadNode(Cursor& cursor, ValueId first) {
    std::vector<std::pair<ValueId, Value>> outputs;
    for (ValueId id = first;;) {
      Value value;
      LOADLINE_ASSIGN_OR_RETURN(value.name, cursor.String());
      LOADLINE_ASSIGN_OR_RETURN(value.type, ReadType(cursor));
      outputs.emplace_back(id, std::move(value));
      if (!cursor.Take(",")) break;
      LOADLINE_ASSIGN_OR_RETURN(id, cursor.Id());
    }
    Node node;
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("="));
    node.op = std::string(cursor.Word());
    LOADLINE_ASSIGN_OR_RETURN(node.name, cursor.String());
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("("));
    LOADLINE_RETURN_IF_ERROR(ReadList(cursor, ")", [&]() -> absl::Status {
      if (cursor.Take("-")) {
        node.inputs.push_back(kNoValue);
        return absl::OkStatus();
      }
      LOADLINE_ASSIGN_OR_RETURN(ValueId id, ReadKnownId(cursor));
      node.inputs.push_back(id);
      return absl::OkStatus();
    }));
    LOADLINE_RETURN_IF_ERROR(ReadAttributes(cursor, &node.attributes));
    const absl::string_view word = cursor.Word();
    const std::optional<Phase> phase = PhaseFromName(word);
    if (!phase.has_value()) return Wrong("\"", word, "\" is no phase");
    node.phase = *phase;
    LOADLINE_RETURN_IF_ERROR(AtEnd(cursor));
    for (auto& [id, value] : outputs) {
      node.outputs.push_back(id);
      LOADLINE_RETURN_IF_ERROR(Define(id, std::move(value)));
    }
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadAttributes(Cursor& cursor, Attributes* attributes) {
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("{"));
    return ReadList(cursor, "}", [&]() -> absl::Status {
      const absl::string_view name = cursor.Word();
      if (name.empty() || attributes->Has(name)) {
        return Wrong("attribute \"", name, "\" has no name or comes twice");
      }
      LOADLINE_RETURN_IF_ERROR(cursor.Expect("="));
      LOADLINE_ASSIGN_OR_RETURN(Attribute value, ReadAttribute(cursor));
      attributes->Set(name, std::move(value));
      return absl::OkStatus();
    });
  }

  absl::Status ReadIds(Cursor& cursor, std::vector<ValueId>* ids) {
    if (!ids->empty()) return Wrong("listed twice");
    if (cursor.AtEnd()) return absl::OkStatus();
    do {
      LOADLINE_ASSIGN_OR_RETURN(ValueId id, ReadKnownId(cursor));
      ids->push_back(id);
    } while (cursor.Take(","));
    return AtEnd(cursor);
  }

  absl::Status ReadUpdate(Cursor& cursor) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId old_version, ReadKnownId(cursor));
    LOADLINE_RETURN_IF_ERROR(cursor.Expect("->"));
    LOADLINE_ASSIGN_OR_RETURN(ValueId new_version, ReadKnownId(cursor));
    graph_.updates.emplace_back(old_version, new_version);
    return AtEnd(cursor);
  }

  const LargeContents& large_;
  Graph graph_;
  std::map<int32_t, Value> values_;
};

}  // namespace

absl::StatusOr<Graph> GraphFromText(absl::string_view text,
                                    const LargeContents& large) {
  Reader reader(large);
  bool header = true;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const absl::Status status = header ? reader.ReadHeader(Cursor(line))
                                       : reader.ReadLine(Cursor(line));
    header = false;
    if (!status.ok()) return Wrong("line ", number, ": ", status.message());
  }
  if (header) return Wrong("line 1: no graph in the text");
  absl::StatusOr<Graph> graph = reader.Finish();
  if (!graph.ok()) {
    return Wrong("line ", number, ": ", graph.status().message());
  }
  return graph;
}

}  // namespace loadline::models
