// loadline.plan/1. Ids of buffers and steps are read first, since a step may
// name a later one. Tested in tests/planner/problem/plan_json_test.cc.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "planner/problem/certificate_json.h"
#include "planner/problem/ids.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/plan.h"
#include "planner/problem/plan_header.h"
#include "planner/problem/problem.h"

namespace loadline::planner {
namespace {

constexpr char kPlanFormat[] = "loadline.plan/1";
constexpr Lane kLanes[] = {Lane::kCompute, Lane::kD2h, Lane::kH2d};
constexpr Action kActions[] = {Action::kKeep, Action::kRecompute,
                               Action::kOffload, Action::kStash};

// Ids in the file -> ids in memory.
struct Ids {
  absl::flat_hash_map<int64_t, ValueId> values;
  absl::flat_hash_map<int64_t, NodeId> nodes;
  absl::flat_hash_map<int64_t, BufferId> buffers;
  absl::flat_hash_map<int64_t, StepId> steps;
};

absl::Status ReadBuffer(const Json& json, bool addresses, Ids& ids,
                        Plan& plan) {
  Buffer buffer;
  const int64_t position = static_cast<int64_t>(plan.buffers.size());
  ObjectReader reader(json, {"buffers", position});
  AddId(reader, reader.Id(), BufferId(static_cast<int32_t>(position)),
        ids.buffers);
  if (!reader.Any("value").IsNull()) {
    buffer.value = reader.Reference("value", ids.values, kNoValue);
  }
  buffer.bytes = reader.Int("bytes");
  const std::string space = reader.String("space");
  if (space != "device" && space != "host") {
    reader.Fail("space", "must be \"device\" or \"host\"");
  }
  buffer.space = space == "host" ? Space::kHost : Space::kDevice;
  if (addresses) buffer.offset = reader.Int("offset");
  plan.buffers.push_back(buffer);
  return reader.Finish();
}

Lane ReadLane(ObjectReader& reader) {
  const std::string name = reader.String("lane");
  for (Lane lane : kLanes) {
    if (name == LaneName(lane)) return lane;
  }
  reader.Fail("lane", "must be \"compute\", \"d2h\" or \"h2d\"");
  return Lane::kCompute;
}

void ReadNodeStep(ObjectReader& reader, const Ids& ids, Step& step) {
  step.kind = StepKind::kNode;
  step.node = reader.Reference("node", ids.nodes, NodeId(-1));
  step.in = reader.References("in", ids.buffers);
  step.out = reader.References("out", ids.buffers);
  if (!reader.Any("workspace").IsNull()) {
    step.workspace = reader.Reference("workspace", ids.buffers, kNoBuffer);
  }
  step.variant = reader.StringOr("variant", "");
}

absl::Status ReadStep(const Json& json, int64_t position, const Ids& ids,
                      Plan& plan) {
  Step step;
  ObjectReader reader(json, {"steps", position});
  reader.Id();
  step.lane = ReadLane(reader);
  const bool compute = step.lane == Lane::kCompute;
  if (compute && reader.Find("node") != nullptr) {
    ReadNodeStep(reader, ids, step);
  } else {
    step.kind = StepKind::kCopy;
    if (compute) {
      const bool encode = reader.Find("encode") != nullptr;
      step.kind = encode ? StepKind::kEncode : StepKind::kDecode;
      if (!encode && reader.Find("decode") == nullptr) {
        reader.Fail("node", "is missing (or \"encode\", or \"decode\")");
      }
      step.codec = reader.String(encode ? "encode" : "decode");
    }
    step.from = reader.Reference("from", ids.buffers, kNoBuffer);
    step.to = reader.Reference("to", ids.buffers, kNoBuffer);
  }
  step.wait = reader.References("wait", ids.steps);
  plan.steps.push_back(std::move(step));
  return reader.Finish();
}

absl::Status ReadDecision(const Json& json, const Ids& ids, Plan& plan) {
  Decision decision;
  const int64_t position = static_cast<int64_t>(plan.decisions.size());
  ObjectReader reader(json, {"decisions", position});
  decision.value = reader.Reference("value", ids.values, kNoValue);
  const std::string name = reader.String("action");
  bool known = false;
  for (Action action : kActions) {
    if (name != ActionName(action)) continue;
    decision.action = action;
    known = true;
  }
  if (!known) {
    reader.Fail("action",
                "must be \"keep\", \"recompute\", \"offload\" or \"stash\"");
  }
  decision.why = reader.String("why");
  plan.decisions.push_back(std::move(decision));
  return reader.Finish();
}

absl::Status ReadHeader(ObjectReader& plan_reader, Plan& plan) {
  if (plan_reader.String("format") != kPlanFormat) {
    plan_reader.Fail("format", absl::StrCat("must be \"", kPlanFormat, "\""));
  }
  ObjectReader problem(plan_reader.Any("problem"), {"plan.problem"});
  plan.problem_name = problem.String("name");
  plan.problem_sha256 = problem.String("sha256");
  ObjectReader predicted(plan_reader.Any("predicted"), {"plan.predicted"});
  plan.predicted.step_ns = predicted.Int("step_ns");
  plan.predicted.compute_ns = predicted.Int("compute_ns");
  plan.predicted.recompute_ns = predicted.Int("recompute_ns");
  plan.predicted.d2h_bytes = predicted.Int("d2h_bytes");
  plan.predicted.h2d_bytes = predicted.Int("h2d_bytes");
  plan.predicted.stall_ns = predicted.Int("stall_ns");
  plan.predicted.peak_bytes = predicted.Int("peak_bytes");
  ObjectReader bounds(plan_reader.Any("bounds"), {"plan.bounds"});
  plan.bounds.peak_bytes = bounds.Int("peak_bytes");
  plan.bounds.step_ns = bounds.Int("step_ns");
  plan.budget_bytes = plan_reader.Int("budget_bytes");
  plan.arena_bytes = plan_reader.Int("arena_bytes");
  plan.host_bytes = plan_reader.Int("host_bytes");
  if (!plan_reader.ok()) return plan_reader.Finish();
  LOADLINE_RETURN_IF_ERROR(problem.Finish());
  LOADLINE_RETURN_IF_ERROR(predicted.Finish());
  return bounds.Finish();
}

Ids IdsOf(const Problem& problem) {
  Ids ids;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    ids.values[problem.values[v].file_id] = ValueId(static_cast<int32_t>(v));
  }
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    ids.nodes[problem.nodes[n].file_id] = NodeId(static_cast<int32_t>(n));
  }
  return ids;
}

// Steps refer to each other in any direction, so their ids are read alone
// first.
absl::Status ReadStepIds(const JsonArray& steps, Ids& ids) {
  for (size_t s = 0; s < steps.size(); ++s) {
    ObjectReader reader(steps[s], {"steps", static_cast<int64_t>(s)});
    AddId(reader, reader.Id(), StepId(static_cast<int32_t>(s)), ids.steps);
    // Not Finish(): the other fields are read later.
    if (!reader.ok()) return reader.Finish();
  }
  return absl::OkStatus();
}

absl::Status ReadLists(ObjectReader& reader, const Problem& problem,
                       Plan& plan) {
  Ids ids = IdsOf(problem);
  const JsonArray& buffers = reader.List("buffers");
  const JsonArray& steps = reader.List("steps");
  plan.sequence = reader.References("sequence", ids.nodes);
  const JsonArray& decisions = reader.List("decisions");
  const Json* certificate = reader.Find("certificate");
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  for (const Json& buffer : buffers) {
    LOADLINE_RETURN_IF_ERROR(ReadBuffer(buffer, problem.addresses, ids, plan));
  }
  LOADLINE_RETURN_IF_ERROR(ReadStepIds(steps, ids));
  for (const Json& step : steps) {
    const int64_t position = static_cast<int64_t>(plan.steps.size());
    LOADLINE_RETURN_IF_ERROR(ReadStep(step, position, ids, plan));
  }
  for (const Json& decision : decisions) {
    LOADLINE_RETURN_IF_ERROR(ReadDecision(decision, ids, plan));
  }
  if (certificate != nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(plan.certificate,
                              ReadCertificate(*certificate, problem));
  }
  return absl::OkStatus();
}

template <typename Id>
void WriteIds(const std::vector<Id>& ids, JsonWriter& json) {
  json.BeginList();
  for (Id id : ids) json.Int(static_cast<int64_t>(id));
  json.EndList();
}

void WriteHeader(const Plan& plan, JsonWriter& json) {
  json.Key("format").String(kPlanFormat).Line();
  json.Key("problem").BeginObject().Key("name").String(plan.problem_name);
  json.Key("sha256").String(plan.problem_sha256).EndObject().Line();
  json.Key("budget_bytes").Int(plan.budget_bytes);
  json.Key("arena_bytes").Int(plan.arena_bytes);
  json.Key("host_bytes").Int(plan.host_bytes).Line();
  json.Key("predicted").BeginObject();
  json.Key("step_ns").Int(plan.predicted.step_ns);
  json.Key("compute_ns").Int(plan.predicted.compute_ns);
  json.Key("recompute_ns").Int(plan.predicted.recompute_ns);
  json.Key("d2h_bytes").Int(plan.predicted.d2h_bytes);
  json.Key("h2d_bytes").Int(plan.predicted.h2d_bytes);
  json.Key("stall_ns").Int(plan.predicted.stall_ns);
  json.Key("peak_bytes").Int(plan.predicted.peak_bytes).EndObject().Line();
  json.Key("bounds").BeginObject();
  json.Key("peak_bytes").Int(plan.bounds.peak_bytes);
  json.Key("step_ns").Int(plan.bounds.step_ns).EndObject().Line();
}

void WriteBuffer(const Plan& plan, const Problem& problem, size_t position,
                 JsonWriter& json) {
  const Buffer& buffer = plan.buffers[position];
  json.Line().BeginObject().Key("id").Int(static_cast<int64_t>(position));
  json.Key("value");
  if (buffer.value == kNoValue) {
    json.Null();
  } else {
    json.Int(problem.value(buffer.value).file_id);
  }
  json.Key("bytes").Int(buffer.bytes).Key("space");
  json.String(buffer.space == Space::kHost ? "host" : "device");
  if (problem.addresses) json.Key("offset").Int(buffer.offset);
  json.EndObject();
}

void WriteStep(const Plan& plan, const Problem& problem, size_t position,
               JsonWriter& json) {
  const Step& step = plan.steps[position];
  json.Line().BeginObject().Key("id").Int(static_cast<int64_t>(position));
  json.Key("lane").String(LaneName(step.lane));
  if (step.kind == StepKind::kNode) {
    json.Key("node").Int(problem.node(step.node).file_id).Key("in");
    WriteIds(step.in, json);
    json.Key("out");
    WriteIds(step.out, json);
    json.Key("workspace");
    if (step.workspace == kNoBuffer) {
      json.Null();
    } else {
      json.Int(static_cast<int64_t>(step.workspace));
    }
    if (!step.variant.empty()) json.Key("variant").String(step.variant);
  } else {
    if (step.kind == StepKind::kEncode) json.Key("encode").String(step.codec);
    if (step.kind == StepKind::kDecode) json.Key("decode").String(step.codec);
    json.Key("from").Int(static_cast<int64_t>(step.from));
    json.Key("to").Int(static_cast<int64_t>(step.to));
  }
  json.Key("wait");
  WriteIds(step.wait, json);
  json.EndObject();
}

}  // namespace

absl::string_view LaneName(Lane lane) {
  switch (lane) {
    case Lane::kCompute:
      return "compute";
    case Lane::kD2h:
      return "d2h";
    case Lane::kH2d:
      return "h2d";
  }
  return "no lane";
}

absl::string_view ActionName(Action action) {
  switch (action) {
    case Action::kKeep:
      return "keep";
    case Action::kRecompute:
      return "recompute";
    case Action::kOffload:
      return "offload";
    case Action::kStash:
      return "stash";
  }
  return "no action";
}

absl::StatusOr<Plan> PlanHeaderFromJson(absl::string_view json) {
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ParseJson(json));
  Plan plan;
  ObjectReader reader(document, {"plan"});
  LOADLINE_RETURN_IF_ERROR(ReadHeader(reader, plan));
  return plan;
}

absl::StatusOr<Plan> PlanFromJson(absl::string_view json,
                                  const Problem& problem) {
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ParseJson(json));
  Plan plan;
  ObjectReader reader(document, {"plan"});
  LOADLINE_RETURN_IF_ERROR(ReadHeader(reader, plan));
  LOADLINE_RETURN_IF_ERROR(ReadLists(reader, problem, plan));
  return plan;
}

std::string PlanToJson(const Plan& plan, const Problem& problem) {
  JsonWriter json;
  json.BeginObject();
  WriteHeader(plan, json);
  json.Key("buffers").BeginList();
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    WriteBuffer(plan, problem, b, json);
  }
  json.Line().EndList().Line().Key("steps").BeginList();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    WriteStep(plan, problem, s, json);
  }
  json.Line().EndList().Line().Key("sequence").BeginList();
  for (NodeId node : plan.sequence) json.Int(problem.node(node).file_id);
  json.EndList().Line().Key("decisions").BeginList();
  for (const Decision& decision : plan.decisions) {
    json.Line().BeginObject();
    json.Key("value").Int(problem.value(decision.value).file_id);
    json.Key("action").String(ActionName(decision.action));
    json.Key("why").String(decision.why).EndObject();
  }
  json.Line().EndList();
  if (plan.certificate) {
    json.Line().Key("certificate");
    WriteCertificate(*plan.certificate, problem, json);
  }
  if (plan.searched.layers > 0) {
    json.Line().Key("extra").BeginObject();
    json.Key("layers").Int(plan.searched.layers);
    json.Key("searched_layers").Int(plan.searched.searched_layers);
    json.Key("searched_nodes").Int(plan.searched.searched_nodes).EndObject();
  }
  return json.EndObject().Take() + "\n";
}

}  // namespace loadline::planner
