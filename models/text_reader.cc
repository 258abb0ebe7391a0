// Reads a Graph's text form line by line. Ids may come in any order: values are
// collected by id and checked to be 0 to n-1 at the end, then VerifyGraph
// checks the graph. Tested in tests/models/text_test.cc.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/text.h"
#include "models/text_cursor.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

using text_internal::Cursor;
using text_internal::ReadAttribute;
using text_internal::ReadContents;
using text_internal::ReadList;
using text_internal::ReadType;
using text_internal::Wrong;

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

  absl::Status Define(ValueId id, Value&& value) {
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
