// Exporters rarely record a node's module, but parameters have it in their
// names. So a node belongs to the module of the parameter that it reads,
// otherwise to that of the node before it. Tested by
// tests/tools/report/report_document_test.cc.
#include "tools/report/attribution.h"

#include <set>

namespace loadline::tools {
namespace {

std::string WithoutLast(absl::string_view name, char separator) {
  const size_t at = name.rfind(separator);
  return at == absl::string_view::npos ? std::string()
                                       : std::string(name.substr(0, at));
}

// "/layer1/conv1/Conv" -> "layer1/conv1"; "" without a path.
std::string PathOf(absl::string_view name) {
  std::string path = WithoutLast(name, '/');
  if (!path.empty() && path[0] == '/') path.erase(0, 1);
  return path;
}

std::string PhaseName(models::Phase phase) {
  switch (phase) {
    case models::Phase::kForward:
      return "forward";
    case models::Phase::kLoss:
      return "loss";
    case models::Phase::kBackward:
      return "backward";
    case models::Phase::kUpdate:
      return "update";
  }
  return "";
}

std::vector<std::string> NodeModules(const planner::Problem& problem,
                                     const planner::ProblemIndex& index) {
  std::vector<std::string> modules(problem.nodes.size());
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    const planner::Node& node = problem.nodes[n];
    std::string& module = modules[n];
    module = PathOf(node.name);
    for (size_t i = 0; module.empty() && i < node.inputs.size(); ++i) {
      const planner::Value& value = problem.value(node.inputs[i]);
      if (value.persistent) module = WithoutLast(value.name, '.');
    }
    for (size_t i = 0; module.empty() && i < node.inputs.size(); ++i) {
      const int32_t producer = index.producer[Index(node.inputs[i])];
      if (producer >= 0) module = modules[static_cast<size_t>(producer)];
    }
  }
  return modules;
}

MemoryKind KindOf(const models::Value& value, models::Phase made_in,
                  const std::set<std::string>& model_tensors) {
  switch (value.kind) {
    case models::ValueKind::kParameter:
    case models::ValueKind::kConstant:
      return MemoryKind::kParameters;
    case models::ValueKind::kState:
      return model_tensors.count(value.name) > 0 ? MemoryKind::kParameters
                                                 : MemoryKind::kOptimizer;
    case models::ValueKind::kInput:
      return MemoryKind::kActivations;
    case models::ValueKind::kIntermediate:
      break;
  }
  return made_in == models::Phase::kForward || made_in == models::Phase::kLoss
             ? MemoryKind::kActivations
             : MemoryKind::kGradients;
}

}  // namespace

absl::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kParameters:
      return "parameters";
    case MemoryKind::kOptimizer:
      return "optimizer";
    case MemoryKind::kGradients:
      return "gradients";
    case MemoryKind::kActivations:
      return "activations";
    case MemoryKind::kWorkspace:
      return "workspace";
    case MemoryKind::kCopies:
      return "copies under way";
  }
  return "";
}

Attribution Attribute(const planner::Problem& problem,
                      const models::Graph* graph,
                      const std::vector<std::string>& model_tensors) {
  const planner::ProblemIndex index = planner::IndexProblem(problem);
  const std::set<std::string> own(model_tensors.begin(), model_tensors.end());
  Attribution result;
  result.modules = NodeModules(problem, index);
  result.operators.resize(problem.nodes.size());
  result.phases.resize(problem.nodes.size());
  for (size_t n = 0; graph != nullptr && n < problem.nodes.size(); ++n) {
    const models::Node& node =
        graph->node(static_cast<models::NodeId>(problem.nodes[n].file_id));
    result.operators[n] = node.op;
    result.phases[n] = PhaseName(node.phase);
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const planner::Value& value = problem.values[v];
    const int32_t producer = index.producer[v];
    // A parameter and its optimizer state belong to their update's node.
    const planner::ValueId next = index.next_version[v];
    const int32_t home = producer >= 0 || next == planner::kNoValue
                             ? producer
                             : index.producer[Index(next)];
    result.value_modules.push_back(
        home >= 0 ? result.modules[static_cast<size_t>(home)]
                  : WithoutLast(value.name, '.'));
    // An updated version is of the same kind as the first version.
    size_t first = v;
    while (index.previous_version[first] != planner::kNoValue) {
      first = Index(index.previous_version[first]);
    }
    if (graph == nullptr) {
      result.kinds.push_back(problem.values[first].persistent
                                 ? MemoryKind::kParameters
                                 : MemoryKind::kActivations);
      continue;
    }
    const int32_t maker = index.producer[first];
    const models::Phase phase =
        maker < 0 ? models::Phase::kForward
                  : graph
                        ->node(static_cast<models::NodeId>(
                            problem.nodes[static_cast<size_t>(maker)].file_id))
                        .phase;
    result.kinds.push_back(KindOf(graph->value(static_cast<models::ValueId>(
                                      problem.values[first].file_id)),
                                  phase, own));
  }
  return result;
}

}  // namespace loadline::tools
