// One host thread submits the commands of all lanes, and on the CPU this thread
// is the compute lane itself. So a copy is submitted as soon as everything that
// it waits for has been submitted. The thread can then block on the compute
// lane without delaying copies, and no wait is submitted before its event.
// Tested in tests/executor/program/program_test.cc and, against the planner's
// own replay, in tests/executor/fake/fake_device_test.cc.
#include "executor/program/command_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/program/needed_waits.h"
#include "executor/program/trace.h"
#include "models/codec_nodes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

Region RegionOf(const planner::Plan& plan, planner::BufferId id) {
  const planner::Buffer& buffer = plan.buffer(id);
  return {buffer.offset, buffer.bytes};
}

// Regions of a graph node's operands, from the plan step's list, which omits
// absent operands.
absl::Status AddOperands(const models::Graph& graph, const models::Node& node,
                         const std::vector<models::ValueId>& operands,
                         const std::vector<planner::BufferId>& buffers,
                         const planner::Problem& problem,
                         const planner::Plan& plan, const Placement& placement,
                         std::vector<Region>* regions) {
  size_t next = 0;
  for (models::ValueId operand : operands) {
    if (operand == models::kNoValue) {
      regions->push_back(kNoRegion);
      continue;
    }
    const auto root = static_cast<int64_t>(
        models::Index(placement.roots[models::Index(operand)]));
    const int64_t offset = placement.offsets[models::Index(operand)];
    const int64_t bytes = graph.value(operand).type.bytes();
    if (next == buffers.size() ||
        problem.value(plan.buffer(buffers[next]).value).file_id != root ||
        plan.buffer(buffers[next]).bytes < offset + bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan was made for another graph: node ", node.name,
                       " has no buffer for ", graph.value(operand).name));
    }
    regions->push_back({plan.buffer(buffers[next]).offset + offset, bytes});
    ++next;
  }
  if (next != buffers.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan was made for another graph: node ", node.name,
                     " has more operands there"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PreparedLaunch> LowerLaunch(const models::Graph& graph,
                                           const planner::Problem& problem,
                                           const planner::Plan& plan,
                                           const planner::Step& step,
                                           const Placement& placement) {
  const planner::Node& planned = problem.node(step.node);
  if (!step.variant.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("the plan runs node ", planned.name, " in the variant ",
                     step.variant, "; this executor knows no variants"));
  }
  if (planned.file_id < 0 ||
      planned.file_id >= static_cast<int64_t>(graph.nodes.size())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan was made for another graph: it has no node ",
                     planned.file_id, " (", planned.name, ")"));
  }
  PreparedLaunch launch;
  launch.node = models::NodeId{static_cast<int32_t>(planned.file_id)};
  const models::Node& node = graph.node(launch.node);
  LOADLINE_RETURN_IF_ERROR(AddOperands(graph, node, node.inputs, step.in,
                                       problem, plan, placement,
                                       &launch.inputs));
  LOADLINE_RETURN_IF_ERROR(AddOperands(graph, node, node.outputs, step.out,
                                       problem, plan, placement,
                                       &launch.outputs));
  if (step.workspace != planner::kNoBuffer) {
    launch.workspace = RegionOf(plan, step.workspace);
  }
  return launch;
}

// The Encode and Decode of every value and codec that a plan uses, each made
// once.
class CodecSteps {
 public:
  CodecSteps(const models::Graph& graph, const planner::Problem& problem,
             const planner::Plan& plan, models::Graph* codecs)
      : graph_(graph), problem_(problem), plan_(plan), codecs_(codecs) {}

  absl::StatusOr<PreparedLaunch> Lower(const planner::Step& step) {
    const bool encodes = step.kind == planner::StepKind::kEncode;
    const planner::ValueId value = plan_.buffer(step.from).value;
    LOADLINE_ASSIGN_OR_RETURN(const models::CodecNodes nodes,
                              NodesOf(value, step.codec));
    PreparedLaunch launch;
    launch.is_codec = true;
    launch.node = encodes ? nodes.encode : nodes.decode;
    const models::Node& node = codecs_->node(launch.node);
    LOADLINE_ASSIGN_OR_RETURN(const Region from,
                              Operand(node.inputs[0], step.from, step.codec));
    LOADLINE_ASSIGN_OR_RETURN(const Region to,
                              Operand(node.outputs[0], step.to, step.codec));
    launch.inputs = {from};
    launch.outputs = {to};
    return launch;
  }

 private:
  absl::StatusOr<models::CodecNodes> NodesOf(planner::ValueId value,
                                             const std::string& codec) {
    const auto key = std::make_pair(value, codec);
    const auto known = nodes_.find(key);
    if (known != nodes_.end()) return known->second;
    const planner::Value& planned = problem_.value(value);
    if (planned.file_id < 0 ||
        planned.file_id >= static_cast<int64_t>(graph_.values.size())) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan was made for another graph: it has no value ",
                       planned.file_id, " (", planned.name, ")"));
    }
    const models::ValueId id{static_cast<int32_t>(planned.file_id)};
    const auto nodes = models::AddCodecNodes(graph_, id, codec, codecs_);
    if (!nodes.ok()) {
      return absl::UnimplementedError(
          absl::StrCat("the plan stores value ", planned.name, " by the codec ",
                       codec, ": ", std::string(nodes.status().message())));
    }
    nodes_[key] = *nodes;
    return *nodes;
  }

  absl::StatusOr<Region> Operand(models::ValueId operand,
                                 planner::BufferId buffer,
                                 const std::string& codec) const {
    const models::Value& value = codecs_->value(operand);
    const planner::Buffer& planned = plan_.buffer(buffer);
    const int64_t bytes = value.type.bytes();
    if (planned.bytes < bytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the plan was made for another graph: a buffer of value ",
          problem_.value(planned.value).name, " has ", planned.bytes,
          " bytes; the codec ", codec, " needs ", bytes));
    }
    return Region{planned.offset, bytes};
  }

  const models::Graph& graph_;
  const planner::Problem& problem_;
  const planner::Plan& plan_;
  models::Graph* codecs_;
  std::map<std::pair<planner::ValueId, std::string>, models::CodecNodes> nodes_;
};

CopyArgs LowerCopy(const planner::Plan& plan, const planner::Step& step) {
  const planner::Buffer& from = plan.buffer(step.from);
  const planner::Buffer& to = plan.buffer(step.to);
  const bool out = step.lane == Lane::kD2h;
  return {.lane = step.lane,
          .device_offset = out ? from.offset : to.offset,
          .host_offset = out ? to.offset : from.offset,
          .bytes = from.bytes};
}

// For each step: its event, if a step of another lane waits for it.
std::vector<EventId> AssignEvents(
    const std::vector<std::vector<planner::StepId>>& waits, int32_t* count) {
  std::vector<EventId> events(waits.size(), kNoEvent);
  *count = 0;
  for (const std::vector<planner::StepId>& of_step : waits) {
    for (planner::StepId wait : of_step) {
      EventId& event = events[planner::Index(wait)];
      if (event == kNoEvent) event = EventId{(*count)++};
    }
  }
  return events;
}

// The order in which steps are submitted: each lane's in list order, and copies
// before the next compute step wherever possible.
absl::StatusOr<std::vector<size_t>> IssueOrder(const planner::Plan& plan) {
  std::array<std::vector<size_t>, planner::kLaneCount> lanes;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    lanes[static_cast<size_t>(plan.steps[s].lane)].push_back(s);
  }
  std::array<size_t, planner::kLaneCount> next{};
  std::vector<bool> issued(plan.steps.size(), false);
  std::vector<size_t> order;
  const auto issue = [&](Lane lane) {
    const auto l = static_cast<size_t>(lane);
    if (next[l] == lanes[l].size()) return false;
    const size_t s = lanes[l][next[l]];
    for (planner::StepId wait : plan.steps[s].wait) {
      if (!issued[planner::Index(wait)]) return false;
    }
    issued[s] = true;
    order.push_back(s);
    ++next[l];
    return true;
  };
  while (issue(Lane::kD2h) || issue(Lane::kH2d) || issue(Lane::kCompute)) {
  }
  if (order.size() != plan.steps.size()) {
    return absl::FailedPreconditionError(
        "steps of the plan wait for each other");
  }
  return order;
}

// Adds the uploads' copies. Returns their events; none for one that no step
// waits for, as it waits for a later one.
std::vector<EventId> AddUploads(const models::Graph& graph, CommandList* list) {
  const Uploads& uploads = list->uploads;
  std::vector<EventId> events(uploads.uploads.size(), kNoEvent);
  for (const int32_t upload : uploads.wait) {
    if (upload < 0) continue;
    EventId& event = events[static_cast<size_t>(upload)];
    if (event == kNoEvent) event = EventId{list->event_count++};
  }
  for (size_t u = 0; u < uploads.uploads.size(); ++u) {
    CopyArgs copy = uploads.uploads[u].copy;
    copy.name =
        graph.value(graph.inputs[uploads.uploads[u].input]).name.c_str();
    list->commands.push_back({.kind = Command::Kind::kCopy,
                              .lane = copy.lane,
                              .copy = copy,
                              .upload = static_cast<int32_t>(u)});
    if (events[u] == kNoEvent) continue;
    list->commands.push_back({.kind = Command::Kind::kRecord,
                              .lane = copy.lane,
                              .event = events[u]});
  }
  return events;
}

}  // namespace

absl::StatusOr<CommandList> LowerPlan(const models::Graph& graph,
                                      const planner::Problem& problem,
                                      const planner::Plan& plan,
                                      const Placement& placement, bool poison,
                                      int64_t least_upload_bytes) {
  CommandList list;
  std::vector<std::vector<FreedBytes>> freed(plan.steps.size());
  if (poison) freed = FreedAfterStep(problem, plan, placement);

  LOADLINE_ASSIGN_OR_RETURN(const std::vector<size_t> order, IssueOrder(plan));
  const std::vector<std::vector<planner::StepId>> waits =
      NeededWaits(plan, order);
  const std::vector<EventId> events = AssignEvents(waits, &list.event_count);
  list.uploads = PlanUploads(graph, plan, placement, order, least_upload_bytes);
  const std::vector<EventId> uploaded = AddUploads(graph, &list);
  CodecSteps codecs(graph, problem, plan, &list.codecs);
  for (size_t s : order) {
    const planner::Step& step = plan.steps[s];
    for (planner::StepId wait : waits[s]) {
      list.commands.push_back({.kind = Command::Kind::kWait,
                               .lane = step.lane,
                               .event = events[planner::Index(wait)]});
    }
    if (list.uploads.wait[s] >= 0) {
      const auto upload = static_cast<size_t>(list.uploads.wait[s]);
      list.commands.push_back({.kind = Command::Kind::kWait,
                               .lane = step.lane,
                               .event = uploaded[upload]});
    }
    if (step.kind != planner::StepKind::kCopy) {
      LOADLINE_ASSIGN_OR_RETURN(
          PreparedLaunch launch,
          step.kind == planner::StepKind::kNode
              ? LowerLaunch(graph, problem, plan, step, placement)
              : codecs.Lower(step));
      launch.trace_slot = static_cast<int32_t>(s);
      launch.name = TraceLabel(problem, plan, step).c_str();
      list.max_operands = std::max<int32_t>(
          list.max_operands, static_cast<int32_t>(std::max(
                                 launch.inputs.size(), launch.outputs.size())));
      list.commands.push_back(
          {.kind = Command::Kind::kLaunch,
           .lane = step.lane,
           .launch = static_cast<int32_t>(list.launches.size())});
      list.launches.push_back(std::move(launch));
    } else {
      CopyArgs copy = LowerCopy(plan, step);
      copy.trace_slot = static_cast<int32_t>(s);
      copy.name = TraceLabel(problem, plan, step).c_str();
      list.commands.push_back(
          {.kind = Command::Kind::kCopy, .lane = step.lane, .copy = copy});
    }
    for (const FreedBytes& bytes : freed[s]) {
      list.commands.push_back(
          {.kind = Command::Kind::kFill, .lane = step.lane, .fill = bytes});
    }
    if (events[s] != kNoEvent) {
      list.commands.push_back({.kind = Command::Kind::kRecord,
                               .lane = step.lane,
                               .event = events[s]});
    }
  }
  return list;
}

}  // namespace loadline::executor
