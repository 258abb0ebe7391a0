// loadline.problem/1. Two passes over the file: ids of values first, so that
// nodes may refer to them in any order. Tested in
// tests/planner/problem/problem_json_test.cc.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/sha256.h"
#include "planner/base/status_macros.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine_json.h"
#include "planner/problem/problem.h"

namespace loadline::planner {
namespace {

constexpr char kProblemFormat[] = "loadline.problem/1";
constexpr int64_t kDefaultAlignmentBytes = 256;

using ValueIds = absl::flat_hash_map<int64_t, ValueId>;

absl::StatusOr<Codec> ReadCodec(const Json& json, int64_t value_file_id) {
  Codec codec;
  const std::string place = absl::StrCat("stash of value ", value_file_id);
  ObjectReader reader(json, {place});
  codec.name = reader.String("codec");
  codec.bytes = reader.Int("bytes");
  codec.encode_ns = reader.Int("encode_ns");
  codec.decode_ns = reader.Int("decode_ns");
  reader.Any("lossless");
  codec.lossless = reader.BoolOr("lossless", true);
  codec.error = reader.NumberOr("error", 0.0);
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  return codec;
}

absl::Status ReadValue(const Json& json, int64_t position, Problem& problem,
                       ValueIds& ids) {
  Value value;
  ObjectReader reader(json, {"values", position});
  value.file_id = reader.Id();
  value.name = reader.String("name");
  value.bytes = reader.Int("bytes");
  value.persistent = reader.BoolOr("persistent", false);
  value.offload = reader.BoolOr("offload", true);
  const JsonArray& stash = reader.ListOr("stash");
  AddId(reader, value.file_id, ValueId(static_cast<int32_t>(position)), ids);
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  for (const Json& codec : stash) {
    LOADLINE_ASSIGN_OR_RETURN(value.stash.emplace_back(),
                              ReadCodec(codec, value.file_id));
  }
  problem.values.push_back(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Variant> ReadVariant(const Json& json, int64_t node_file_id) {
  Variant variant;
  const std::string place = absl::StrCat("variants of node ", node_file_id);
  ObjectReader reader(json, {place});
  variant.name = reader.String("name");
  variant.time_ns = reader.Int("time_ns");
  variant.workspace_bytes = reader.Int("workspace_bytes");
  reader.Any("exact");
  variant.exact = reader.BoolOr("exact", true);
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  return variant;
}

void ReadInplace(ObjectReader& reader, const ValueIds& ids, Node& node) {
  for (const Json& json : reader.ListOr("inplace")) {
    const auto* pair = std::get_if<JsonArray>(&json.value);
    if (pair == nullptr || pair->size() != 2) {
      reader.Fail("inplace", "must hold pairs [input value, output value]");
      return;
    }
    ValueId sides[2];
    for (int i = 0; i < 2; ++i) {
      const auto* id = std::get_if<int64_t>(&(*pair)[i].value);
      const auto found = id == nullptr ? ids.end() : ids.find(*id);
      if (found == ids.end()) {
        reader.Fail("inplace", id == nullptr
                                   ? "must hold ids of values"
                                   : absl::StrCat("refers to id ", *id,
                                                  ", which is nothing"));
        return;
      }
      sides[i] = found->second;
    }
    node.inplace.push_back({sides[0], sides[1]});
  }
}

absl::Status ReadNode(const Json& json, int64_t position, const ValueIds& ids,
                      absl::flat_hash_map<int64_t, NodeId>& node_ids,
                      Problem& problem) {
  Node node;
  ObjectReader reader(json, {"nodes", position});
  node.file_id = reader.Id();
  node.name = reader.String("name");
  node.time_ns = reader.Int("time_ns");
  node.inputs = reader.References("inputs", ids);
  node.outputs = reader.References("outputs", ids);
  node.workspace_bytes = reader.IntOr("workspace_bytes", 0);
  node.recompute = reader.BoolOr("recompute", true);
  ReadInplace(reader, ids, node);
  const JsonArray& variants = reader.ListOr("variants");
  AddId(reader, node.file_id, NodeId(static_cast<int32_t>(position)), node_ids);
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  for (const Json& variant : variants) {
    LOADLINE_ASSIGN_OR_RETURN(node.variants.emplace_back(),
                              ReadVariant(variant, node.file_id));
  }
  problem.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

void WriteValue(const Value& value, JsonWriter& json) {
  json.BeginObject().Key("id").Int(value.file_id);
  json.Key("name").String(value.name).Key("bytes").Int(value.bytes);
  if (value.persistent) json.Key("persistent").Bool(true);
  if (!value.offload) json.Key("offload").Bool(false);
  if (!value.stash.empty()) {
    json.Key("stash").BeginList();
    for (const Codec& codec : value.stash) {
      json.BeginObject().Key("codec").String(codec.name);
      json.Key("bytes").Int(codec.bytes);
      json.Key("encode_ns").Int(codec.encode_ns);
      json.Key("decode_ns").Int(codec.decode_ns);
      json.Key("lossless").Bool(codec.lossless);
      if (codec.error != 0) json.Key("error").Number(codec.error);
      json.EndObject();
    }
    json.EndList();
  }
  json.EndObject();
}

void WriteValueIds(const Problem& problem, const std::vector<ValueId>& ids,
                   JsonWriter& json) {
  json.BeginList();
  for (ValueId id : ids) json.Int(problem.value(id).file_id);
  json.EndList();
}

void WriteNode(const Problem& problem, const Node& node, JsonWriter& json) {
  json.BeginObject().Key("id").Int(node.file_id);
  json.Key("name").String(node.name).Key("time_ns").Int(node.time_ns);
  json.Key("inputs");
  WriteValueIds(problem, node.inputs, json);
  json.Key("outputs");
  WriteValueIds(problem, node.outputs, json);
  if (node.workspace_bytes != 0) {
    json.Key("workspace_bytes").Int(node.workspace_bytes);
  }
  if (!node.recompute) json.Key("recompute").Bool(false);
  if (!node.inplace.empty()) {
    json.Key("inplace").BeginList();
    for (const auto& [in, out] : node.inplace) {
      WriteValueIds(problem, {in, out}, json);
    }
    json.EndList();
  }
  if (!node.variants.empty()) {
    json.Key("variants").BeginList();
    for (const Variant& variant : node.variants) {
      json.BeginObject().Key("name").String(variant.name);
      json.Key("time_ns").Int(variant.time_ns);
      json.Key("workspace_bytes").Int(variant.workspace_bytes);
      json.Key("exact").Bool(variant.exact).EndObject();
    }
    json.EndList();
  }
  json.EndObject();
}

}  // namespace

absl::StatusOr<Problem> ProblemFromJson(absl::string_view text) {
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ParseJson(text));
  Problem problem;
  ObjectReader reader(document, {"problem"});
  if (reader.String("format") != kProblemFormat) {
    reader.Fail("format", absl::StrCat("must be \"", kProblemFormat, "\""));
  }
  problem.name = reader.String("name");
  problem.time_unit = reader.StringOr("time_unit", "ns");
  const JsonArray& values = reader.List("values");
  const JsonArray& nodes = reader.List("nodes");
  problem.addresses = reader.BoolOr("addresses", true);
  problem.alignment_bytes =
      reader.IntOr("alignment_bytes", kDefaultAlignmentBytes);
  if (const Json* machine = reader.Find("machine")) {
    LOADLINE_ASSIGN_OR_RETURN(problem.machine, ReadMachine(*machine));
  }
  ValueIds ids;
  absl::flat_hash_map<int64_t, NodeId> node_ids;
  if (reader.ok()) {
    problem.values.reserve(values.size());
    for (const Json& value : values) {
      const int64_t position = static_cast<int64_t>(problem.values.size());
      LOADLINE_RETURN_IF_ERROR(ReadValue(value, position, problem, ids));
    }
    problem.nodes.reserve(nodes.size());
    for (const Json& node : nodes) {
      const int64_t position = static_cast<int64_t>(problem.nodes.size());
      LOADLINE_RETURN_IF_ERROR(
          ReadNode(node, position, ids, node_ids, problem));
    }
  }
  problem.outputs = reader.References("outputs", ids);
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  return problem;
}

namespace {

// A problem's file, or its canonical bytes with the machine as /2 or as /1.
enum class Form { kFile, kCanonical, kCanonical1 };

std::string WriteProblem(const Problem& problem, Form form) {
  JsonWriter json;
  json.BeginObject().Key("format").String(kProblemFormat);
  json.Key("name").String(problem.name);
  if (problem.time_unit != "ns") {
    json.Key("time_unit").String(problem.time_unit);
  }
  json.Key("values").BeginList();
  for (const Value& value : problem.values) WriteValue(value, json);
  json.EndList().Key("nodes").BeginList();
  for (const Node& node : problem.nodes) WriteNode(problem, node, json);
  json.EndList().Key("outputs");
  WriteValueIds(problem, problem.outputs, json);
  if (!problem.addresses) json.Key("addresses").Bool(false);
  if (problem.alignment_bytes != kDefaultAlignmentBytes) {
    json.Key("alignment_bytes").Int(problem.alignment_bytes);
  }
  if (problem.machine.has_value()) {
    json.Key("machine");
    if (form == Form::kCanonical1) {
      WriteMachine1(*problem.machine, json);
    } else {
      WriteMachine(
          *problem.machine,
          form == Form::kFile ? MachineFields::kAll : MachineFields::kCanonical,
          json);
    }
  }
  return json.EndObject().Take();
}

}  // namespace

std::string ProblemToJson(const Problem& problem) {
  return WriteProblem(problem, Form::kFile);
}

std::string ProblemSha256(const Problem& problem) {
  const bool as_1 = problem.machine && problem.machine->format_version == 1;
  return Sha256Hex(
      WriteProblem(problem, as_1 ? Form::kCanonical1 : Form::kCanonical));
}

bool IsProblemSha256(const Problem& problem, absl::string_view sha256) {
  if (sha256 == ProblemSha256(problem)) return true;
  if (!problem.machine) return false;
  const bool as_2 = problem.machine->format_version == 1;
  if (!as_2 && !FitsMachine1(*problem.machine)) return false;
  return sha256 == Sha256Hex(WriteProblem(
                       problem, as_2 ? Form::kCanonical : Form::kCanonical1));
}

}  // namespace loadline::planner
