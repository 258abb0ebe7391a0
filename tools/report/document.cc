// Columns keep a plan with ten thousand nodes small, and repeated texts
// (modules, operators, reasons) are stored once in a list. Tested by
// tests/tools/report/report_document_test.cc.
#include "tools/report/document.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/reproduce.h"
#include "tools/pipeline/sweep.h"
#include "tools/pipeline/timeline.h"
#include "tools/report/attribution.h"
#include "tools/report/plan_summary.h"

namespace loadline::tools {
namespace {

using Json = nlohmann::ordered_json;

// Texts, referred to by number.
class Texts {
 public:
  int64_t Number(const std::string& text) {
    const auto [entry, added] =
        numbers_.emplace(text, static_cast<int64_t>(list_.size()));
    if (added) list_.push_back(text);
    return entry->second;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::string, int64_t> numbers_;
  Json list_ = Json::array();
};

// Names of one layer share a prefix: the path up to the last '/', or else the
// last '.', is stored as a text. Halves the size of a large model's names.
void AddName(const std::string& name, Texts* texts, Json* table) {
  size_t end = name.rfind('/');
  if (end == std::string::npos) end = name.rfind('.');
  end = end == std::string::npos ? 0 : end + 1;
  (*table)["path"].push_back(texts->Number(name.substr(0, end)));
  (*table)["name"].push_back(name.substr(end));
}

// An object of empty arrays, so that empty tables have their columns too.
Json Columns(std::initializer_list<const char*> names) {
  Json table = Json::object();
  for (const char* name : names) table[name] = Json::array();
  return table;
}

Json Nodes(const planner::Problem& problem, const Attribution& facts,
           Texts* texts) {
  Json table =
      Columns({"path", "name", "operator", "module", "phase", "time_ns"});
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    AddName(problem.nodes[n].name, texts, &table);
    table["operator"].push_back(texts->Number(facts.operators[n]));
    table["module"].push_back(texts->Number(facts.modules[n]));
    table["phase"].push_back(texts->Number(facts.phases[n]));
    table["time_ns"].push_back(problem.nodes[n].time_ns);
  }
  return table;
}

Json Values(const planner::Problem& problem, const planner::Plan& plan,
            const Attribution& facts, Texts* texts) {
  std::vector<const planner::Decision*> decisions(problem.values.size());
  for (const planner::Decision& decision : plan.decisions) {
    decisions[Index(decision.value)] = &decision;
  }
  const planner::ProblemIndex index = planner::IndexProblem(problem);
  Json table = Columns(
      {"path", "name", "bytes", "kind", "action", "reason", "node", "module"});
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const planner::Decision* decision = decisions[v];
    AddName(problem.values[v].name, texts, &table);
    table["bytes"].push_back(problem.values[v].bytes);
    table["kind"].push_back(static_cast<int>(facts.kinds[v]));
    table["action"].push_back(texts->Number(
        decision == nullptr
            ? ""
            : std::string(planner::ActionName(decision->action))));
    table["reason"].push_back(
        texts->Number(decision == nullptr ? "" : decision->why));
    table["node"].push_back(index.producer[v]);
    table["module"].push_back(texts->Number(facts.value_modules[v]));
  }
  return table;
}

// Device buffers; workspaces have value -1.
Json Buffers(const planner::Plan& plan, const Timeline& timeline) {
  Json table = Columns({"value", "bytes", "offset", "from", "copied_in",
                        "copied_out", "to", "start_ns", "end_ns"});
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const planner::Buffer& buffer = plan.buffers[b];
    if (buffer.space != planner::Space::kDevice) continue;
    const BufferLife& life = timeline.lives[b];
    table["value"].push_back(static_cast<int32_t>(buffer.value));
    table["bytes"].push_back(buffer.bytes);
    table["offset"].push_back(buffer.offset);
    table["from"].push_back(life.from);
    table["copied_in"].push_back(life.ready - life.from);
    table["copied_out"].push_back(life.to - life.done);
    table["to"].push_back(life.to);
    table["start_ns"].push_back(life.start_ns);
    table["end_ns"].push_back(life.end_ns);
  }
  return table;
}

// "encode bits"; empty for nodes and copies.
std::string CodecText(const planner::Step& step) {
  switch (step.kind) {
    case planner::StepKind::kEncode:
      return absl::StrCat("encode ", step.codec);
    case planner::StepKind::kDecode:
      return absl::StrCat("decode ", step.codec);
    default:
      return "";
  }
}

// Lanes 0 compute, 1 out, 2 in. `node` is -1 for copies and codecs, `value` for
// nodes.
Json Steps(const planner::Plan& plan, const Timeline& timeline, Texts* texts) {
  Json table = Columns(
      {"lane", "node", "value", "codec", "again", "start_ns", "end_ns"});
  std::vector<bool> ran;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    const bool is_node = step.kind == planner::StepKind::kNode;
    bool again = false;
    if (is_node) {
      if (Index(step.node) >= ran.size()) ran.resize(Index(step.node) + 1);
      again = ran[Index(step.node)];
      ran[Index(step.node)] = true;
    }
    table["lane"].push_back(static_cast<int>(step.lane));
    table["node"].push_back(is_node ? static_cast<int32_t>(step.node) : -1);
    table["value"].push_back(
        is_node ? -1 : static_cast<int32_t>(plan.buffer(step.from).value));
    table["codec"].push_back(texts->Number(CodecText(step)));
    table["again"].push_back(again ? 1 : 0);
    table["start_ns"].push_back(timeline.spans[s].start_ns);
    table["end_ns"].push_back(timeline.spans[s].end_ns);
  }
  return table;
}

Json Samples(const Timeline& timeline) {
  Json table = Columns({"step", "time_ns", "live_bytes"});
  for (const MemorySample& sample : timeline.samples) {
    table["step"].push_back(static_cast<int32_t>(sample.step));
    table["time_ns"].push_back(sample.time_ns);
    table["live_bytes"].push_back(sample.live_bytes);
  }
  return table;
}

Json MeasuredJson(const Measured& measured) {
  Json out;
  out["arena_bytes"] = measured.arena_bytes;
  out["step_ns"] = measured.step_ns;
  out["steps"] = measured.steps;
  out["spans"] = Columns({"start_ns", "end_ns"});
  for (const executor::TraceSpan& span : measured.spans) {
    out["spans"]["start_ns"].push_back(span.start_ns);
    out["spans"]["end_ns"].push_back(span.end_ns);
  }
  return out;
}

}  // namespace

void AddAxis(const ParetoPoint& point, Json* out) {
  if (point.axis.empty()) return;
  (*out)["axis"] = point.axis;
  (*out)["size"] = point.size;
  if (point.axis == kBatchAxis) (*out)["batch"] = point.size;
}

Json ParetoPointJson(const ParetoPoint& point) {
  const planner::Prediction& predicted = point.plan.predicted;
  Json out;
  AddAxis(point, &out);
  out["budget_bytes"] = point.plan.budget_bytes;
  out["arena_bytes"] = point.plan.arena_bytes;
  out["host_bytes"] = point.plan.host_bytes;
  out["predicted_peak_bytes"] = predicted.peak_bytes;
  out["predicted_step_ns"] = predicted.step_ns;
  out["recompute_ns"] = predicted.recompute_ns;
  out["stall_ns"] = predicted.stall_ns;
  out["d2h_bytes"] = predicted.d2h_bytes;
  out["h2d_bytes"] = predicted.h2d_bytes;
  out["bound_step_ns"] = point.plan.bounds.step_ns;
  for (const Measured& measured : point.measured) {
    out["step_ns"] = measured.step_ns;
    out["measured_arena_bytes"] = measured.arena_bytes;
  }
  return out;
}

ReportInput InputOf(const PlannedStep& step) {
  ReportInput input;
  input.problem = &step.problem;
  input.keep_everything = &step.keep_everything;
  input.plan = &step.plan;
  input.graph = step.graph.nodes.empty() ? nullptr : &step.graph;
  input.model_tensors = step.model_tensors;
  input.command = CommandToReproduce();
  return input;
}

absl::StatusOr<Json> ReportDocument(const ReportInput& input) {
  const planner::Problem& problem = *input.problem;
  const planner::Plan& plan = *input.plan;
  LOADLINE_ASSIGN_OR_RETURN(const Timeline timeline,
                            ReplayTimeline(problem, plan));
  const Attribution facts =
      Attribute(problem, input.graph, input.model_tensors);
  Texts texts;
  Json out;
  out["format"] = "loadline.report/1";
  out["command"] = input.command;
  out["summary"] = PlanSummaryJson(problem, *input.keep_everything, plan);
  out["addresses"] = problem.addresses;
  if (problem.machine.has_value()) {
    out["machine"] = {{"name", problem.machine->name},
                      {"nominal", problem.machine->nominal},
                      {"reserved_bytes", problem.machine->reserved_bytes},
                      {"d2h_bytes_per_s", problem.machine->d2h.bytes_per_s},
                      {"h2d_bytes_per_s", problem.machine->h2d.bytes_per_s}};
  }
  out["assumptions"] = input.assumptions;
  out["kinds"] = Json::array();
  for (int k = 0; k < kMemoryKindCount; ++k) {
    out["kinds"].push_back(
        std::string(MemoryKindName(static_cast<MemoryKind>(k))));
  }
  out["nodes"] = Nodes(problem, facts, &texts);
  out["values"] = Values(problem, plan, facts, &texts);
  out["buffers"] = Buffers(plan, timeline);
  out["steps"] = Steps(plan, timeline, &texts);
  out["samples"] = Samples(timeline);
  out["texts"] = texts.list();
  if (input.measured != nullptr) {
    out["measured"] = MeasuredJson(*input.measured);
  }
  out["front"] = Json::array();
  for (const ParetoPoint& point : input.pareto) {
    out["front"].push_back(ParetoPointJson(point));
  }
  if (input.recompute_only != nullptr) {
    out["recompute_only"] = ParetoPointJson({.plan = *input.recompute_only});
  }
  return out;
}

}  // namespace loadline::tools
