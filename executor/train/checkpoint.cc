// A safetensors file whose metadata holds the position of the run. Tested in
// tests/executor/train/checkpoint_test.cc.
#include "executor/train/checkpoint.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "executor/files/safetensors.h"
#include "executor/train/data.h"
#include "models/micro_batches.h"
#include "models/ops/state_blocks.h"
#include "planner/base/sha256.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

constexpr char kFormat[] = "loadline.checkpoint/1";
constexpr char kConstants[] = "constants";
constexpr char kData[] = "data";
constexpr char kMicroBatches[] = "micro_batches";
constexpr char kSegments[] = "segments";
constexpr char kNote[] = "note.";  // prefix of a note's key

std::string AttributeText(const models::Attribute& attribute) {
  struct Text {
    std::string operator()(int64_t i) const { return absl::StrCat("i", i); }
    // Doubles as their bits: StrCat prints only six digits.
    std::string operator()(double d) const {
      return std::string(reinterpret_cast<const char*>(&d), sizeof(d));
    }
    std::string operator()(const std::string& s) const {
      return absl::StrCat("s", s);
    }
    std::string operator()(const models::Ints& ints) const {
      std::string text = "l";
      for (int64_t i : ints) absl::StrAppend(&text, i, ",");
      return text;
    }
  };
  return std::visit(Text{}, attribute);
}

template <typename T>
absl::Status ReadNumber(const SafetensorsFile& file, const std::string& key,
                        T* number) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end() ||
      !absl::SimpleAtoi(found->second, number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its metadata lacks the number '", key, "'"));
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> NotesOf(const SafetensorsFile& file) {
  std::map<std::string, std::string> notes;
  for (const auto& [key, value] : file.metadata) {
    if (absl::StartsWith(key, kNote)) {
      notes[key.substr(sizeof(kNote) - 1)] = value;
    }
  }
  return notes;
}

absl::StatusOr<RunPosition> ReadPosition(const SafetensorsFile& file) {
  RunPosition position;
  int64_t shuffle = 0;
  LOADLINE_RETURN_IF_ERROR(ReadNumber(file, "step", &position.step));
  LOADLINE_RETURN_IF_ERROR(ReadNumber(file, "seed", &position.seed));
  LOADLINE_RETURN_IF_ERROR(ReadNumber(file, "shuffle", &shuffle));
  LOADLINE_RETURN_IF_ERROR(ReadNumber(file, "batch", &position.batch));
  LOADLINE_RETURN_IF_ERROR(
      ReadNumber(file, "examples_seen", &position.examples_seen));
  position.shuffle = shuffle != 0;
  position.notes = NotesOf(file);
  const auto constants = file.metadata.find(kConstants);
  if (constants != file.metadata.end()) position.constants = constants->second;
  const auto data = file.metadata.find(kData);
  if (data != file.metadata.end()) position.data = data->second;
  if (position.step < 0 || position.batch < 0 || position.examples_seen < 0) {
    return absl::InvalidArgumentError("its metadata counts below zero");
  }
  return position;
}

absl::Status CheckFormat(const SafetensorsFile& file) {
  const auto format = file.metadata.find("format");
  if (format != file.metadata.end() && format->second == kFormat) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("it is not a ", kFormat, " file"));
}

// The file holds exactly the values that the program saves, with their types.
absl::Status CheckContents(const SafetensorsFile& file,
                           const Program& program) {
  const models::Graph& graph = program.graph();
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = graph.value(id);
    const auto found = file.types.find(value.name);
    if (found == file.types.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("it lacks '", value.name, "'"));
    }
    if (found->second != value.type) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", value.name, "' is ", found->second.ToString(),
                       " there and ", value.type.ToString(), " in this model"));
    }
  }
  if (file.types.size() != program.saved_values().size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it holds ", file.types.size(), " tensors; this model has ",
        program.saved_values().size()));
  }
  return absl::OkStatus();
}

// Optimizer states of a file and a graph have the same number of bits.
absl::Status CheckStateBits(const SafetensorsFile& file,
                            const models::Graph& graph) {
  for (const models::Value& value : graph.values) {
    const auto found = file.types.find(value.name);
    if (found == file.types.end()) continue;
    const bool there = models::IsStateBlocks(found->second);
    if (there == models::IsStateBlocks(value.type)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("its optimizer states have ", there ? 8 : 32,
                     " bits, and those of this run have ", there ? 32 : 8,
                     "; resume it with --optimizer-bits ", there ? 8 : 32));
  }
  return absl::OkStatus();
}

bool IsConstant(const models::Value& value) {
  return value.kind == models::ValueKind::kConstant &&
         value.initial.has_value() && value.initial->data != nullptr;
}

std::string DigestOf(const models::Value& constant) {
  planner::Sha256 hash;
  hash.Add(constant.initial->data->data(), constant.initial->data->size());
  return absl::StrCat(hash.HexDigest().substr(0, 16), " ", constant.name, "\n");
}

// The constants of a graph have the contents of a digest. Requires a graph with
// the same model hash, and so with the same names.
absl::Status CheckConstants(absl::string_view digest,
                            const models::Graph& graph) {
  for (const models::Value& value : graph.values) {
    if (!IsConstant(value)) continue;
    if (absl::ConsumePrefix(&digest, DigestOf(value))) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "its run had other numbers in '", value.name,
        "', which is not trained and therefore not in the checkpoint; resume "
        "it with the model file, and the settings, that the run began with"));
  }
  return absl::OkStatus();
}

// "head=4 mlp=2", from the names of the nodes that run in segments, which end
// with "[head 1/4]" (passes/split_operators.h).
std::string SegmentsOf(const models::Graph& graph) {
  std::set<std::string> segments;
  for (const models::Node& node : graph.nodes) {
    const absl::string_view name = node.name;
    const size_t close = name.rfind(']');
    if (close == absl::string_view::npos) continue;
    const size_t open = name.rfind('[', close);
    if (open == absl::string_view::npos) continue;
    const absl::string_view inside = name.substr(open + 1, close - open - 1);
    const size_t space = inside.rfind(' ');
    const size_t slash = inside.rfind('/');
    if (space == absl::string_view::npos || slash == absl::string_view::npos ||
        slash < space) {
      continue;
    }
    segments.insert(
        absl::StrCat(inside.substr(0, space), "=", inside.substr(slash + 1)));
  }
  return absl::StrJoin(segments, " ");
}

// The step of the file's run has as many micro-batches and segments.
absl::Status CheckStructure(const SafetensorsFile& file,
                            const models::Graph& graph) {
  const auto parts = file.metadata.find(kMicroBatches);
  const std::string own = absl::StrCat(models::MicroBatchesOf(graph));
  if (parts != file.metadata.end() && parts->second != own) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its run had ", parts->second, " micro-batches, and this one has ", own,
        "; resume it with --micro-batches ", parts->second));
  }
  const auto segments = file.metadata.find(kSegments);
  const std::string here = SegmentsOf(graph);
  if (segments == file.metadata.end() || segments->second == here) {
    return absl::OkStatus();
  }
  const auto text = [](const std::string& some) {
    return some.empty() ? std::string("none") : some;
  };
  return absl::FailedPreconditionError(
      absl::StrCat("its run had segments: ", text(segments->second),
                   ", and this one has: ", text(here), "; resume it ",
                   segments->second.empty()
                       ? "without --split"
                       : absl::StrCat("with --split ", segments->second)));
}

absl::StatusOr<RunPosition> PositionFor(const SafetensorsFile& file,
                                        const models::Graph& graph) {
  LOADLINE_RETURN_IF_ERROR(CheckFormat(file));
  LOADLINE_ASSIGN_OR_RETURN(const RunPosition position, ReadPosition(file));
  LOADLINE_RETURN_IF_ERROR(CheckStateBits(file, graph));
  const auto hash = file.metadata.find("model_sha256");
  if (hash == file.metadata.end() || hash->second != ModelSha256(graph)) {
    const std::optional<int64_t> batch = BatchOf(graph);
    if (batch.has_value() && position.batch != *batch) {
      return absl::FailedPreconditionError(
          absl::StrCat("it was written at a batch of ", position.batch,
                       ", and this run has ", *batch));
    }
    LOADLINE_RETURN_IF_ERROR(CheckStructure(file, graph));
    return absl::FailedPreconditionError(
        "it was written by a run of another model, batch or optimizer, or "
        "with other settings of the step: precision, clipping, dropout, loss "
        "(label smoothing, class weights), frozen weights, adapters, averages, "
        "or passes; resume it with the flags of that run");
  }
  if (!position.constants.empty()) {
    LOADLINE_RETURN_IF_ERROR(CheckConstants(position.constants, graph));
  }
  return position;
}

absl::StatusOr<RunPosition> Restore(const SafetensorsFile& file,
                                    Program& program) {
  // The contents first: a tensor that differs says more than the hash.
  const auto position = PositionFor(file, program.graph());
  if (absl::IsInvalidArgument(position.status())) return position;
  LOADLINE_RETURN_IF_ERROR(CheckContents(file, program));
  if (!position.ok()) return position;
  for (const auto& [name, bytes] : file.contents) {
    LOADLINE_RETURN_IF_ERROR(program.WritePersistent(name, bytes));
  }
  return position;
}

absl::StatusOr<RunPosition> OfCheckpoint(
    const std::string& path, const absl::StatusOr<RunPosition>& position) {
  if (position.ok()) return position;
  return absl::Status(
      position.status().code(),
      absl::StrCat("checkpoint ", path, ": ", position.status().message()));
}

}  // namespace

std::string ModelSha256(const models::Graph& graph) {
  planner::Sha256 hash;
  for (const models::Value& value : graph.values) {
    if (value.kind == models::ValueKind::kIntermediate) continue;
    hash.AddText(value.name);
    hash.AddText(value.type.ToString());
  }
  for (const models::Node& node : graph.nodes) {
    hash.AddText(node.name);
    hash.AddText(node.op);
    for (const auto& [name, attribute] : node.attributes.map()) {
      hash.AddText(name);
      hash.AddText(AttributeText(attribute));
    }
  }
  return hash.HexDigest();
}

std::string DigestOfConstants(const models::Graph& graph) {
  std::string digest;
  for (const models::Value& value : graph.values) {
    if (IsConstant(value)) absl::StrAppend(&digest, DigestOf(value));
  }
  return digest;
}

absl::StatusOr<std::string> WeightsSha256(Program& program) {
  planner::Sha256 hash;
  std::vector<std::byte> buffer;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    if (value.kind != models::ValueKind::kParameter) continue;
    buffer.resize(static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program.ReadPersistent(value.name, absl::MakeSpan(buffer)));
    hash.Add(buffer.data(), buffer.size());
  }
  return hash.HexDigest();
}

absl::Status SaveCheckpoint(const std::string& path, Program& program,
                            const RunPosition& position) {
  std::vector<NamedType> tensors;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    tensors.push_back({value.name, value.type});
  }
  std::map<std::string, std::string> metadata = {
      {"format", kFormat},
      {"step", absl::StrCat(position.step)},
      {"seed", absl::StrCat(position.seed)},
      {"shuffle", position.shuffle ? "1" : "0"},
      {"batch", absl::StrCat(position.batch)},
      {"examples_seen", absl::StrCat(position.examples_seen)},
      {"model_sha256", ModelSha256(program.graph())},
      {kContentHash, ""},
      {kMicroBatches, absl::StrCat(models::MicroBatchesOf(program.graph()))},
      {kSegments, SegmentsOf(program.graph())},
      {kConstants, position.constants.empty()
                       ? DigestOfConstants(program.graph())
                       : position.constants}};
  if (!position.data.empty()) metadata[kData] = position.data;
  for (const auto& [key, value] : position.notes) {
    metadata[absl::StrCat(kNote, key)] = value;
  }
  return WriteSafetensors(path, tensors, metadata,
                          [&](size_t i, absl::Span<std::byte> to) {
                            return program.ReadPersistent(tensors[i].name, to);
                          });
}

absl::StatusOr<std::map<std::string, std::string>> ReadCheckpointNotes(
    const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(RunPosition position, ReadCheckpointPosition(path));
  return std::move(position.notes);
}

absl::StatusOr<RunPosition> ReadCheckpointPosition(const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const SafetensorsFile file, ReadSafetensors(path));
  const absl::Status format = CheckFormat(file);
  return OfCheckpoint(path, format.ok() ? ReadPosition(file) : format);
}

absl::StatusOr<RunPosition> ReadCheckpointPosition(const std::string& path,
                                                   const models::Graph& graph) {
  LOADLINE_ASSIGN_OR_RETURN(const SafetensorsFile file, ReadSafetensors(path));
  return OfCheckpoint(path, PositionFor(file, graph));
}

absl::StatusOr<RunPosition> LoadCheckpoint(const std::string& path,
                                           Program& program) {
  LOADLINE_ASSIGN_OR_RETURN(const SafetensorsFile file, ReadSafetensors(path));
  return OfCheckpoint(path, Restore(file, program));
}

}  // namespace loadline::executor
