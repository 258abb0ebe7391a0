// `loadline inspect`: contents of a model, without planning. Tested by
// tests/end_to_end.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "models/ops/operator.h"
#include "models/text.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/pipeline/import_model.h"

namespace loadline::tools {
namespace {

struct InspectVerbFlags {
  ModelFlags model;
  bool json = false;
  bool text = false;
};

struct OperatorTotal {
  int64_t count = 0;
  double flops = 0;
  int64_t output_bytes = 0;
};

struct Summary {
  int64_t parameters = 0;
  int64_t parameter_bytes = 0;
  int64_t state_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t activation_bytes = 0;
  double flops = 0;
  std::map<std::string, OperatorTotal> operators;
  std::vector<models::ValueId> largest;  // values, largest first
};

Summary Summarize(const models::Graph& graph) {
  Summary summary;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const models::Value& value = graph.values[i];
    const int64_t bytes = value.type.bytes();
    switch (value.kind) {
      case models::ValueKind::kParameter:
        summary.parameters += value.type.elements();
        summary.parameter_bytes += bytes;
        break;
      case models::ValueKind::kState:
        summary.state_bytes += bytes;
        break;
      case models::ValueKind::kConstant:
        summary.constant_bytes += bytes;
        break;
      default:
        break;
    }
    summary.largest.push_back(static_cast<models::ValueId>(i));
  }
  std::stable_sort(summary.largest.begin(), summary.largest.end(),
                   [&](models::ValueId a, models::ValueId b) {
                     return graph.value(a).type.bytes() >
                            graph.value(b).type.bytes();
                   });
  if (summary.largest.size() > 10) summary.largest.resize(10);
  for (const models::Node& node : graph.nodes) {
    const models::Operator* op = models::FindOperator(node.op);
    OperatorTotal& total = summary.operators[node.op];
    ++total.count;
    const double flops = models::CostOf(graph, node).flops;
    total.flops += flops;
    summary.flops += flops;
    if (op != nullptr && op->view) continue;
    for (models::ValueId output : node.outputs) {
      total.output_bytes += graph.value(output).type.bytes();
      summary.activation_bytes += graph.value(output).type.bytes();
    }
  }
  return summary;
}

std::string DescribeValue(const models::Graph& graph, models::ValueId id) {
  const models::Value& value = graph.value(id);
  return fmt::format("{:>10}  {:<24}  {}\n", FormatBytes(value.type.bytes()),
                     value.type.ToString(), value.name);
}

void PrintTable(const models::Graph& graph, const Summary& summary) {
  Print("inputs\n");
  for (models::ValueId id : graph.inputs) {
    PrintText(DescribeValue(graph, id));
  }
  Print("outputs\n");
  for (models::ValueId id : graph.outputs) {
    PrintText(DescribeValue(graph, id));
  }
  Print("\nparameters   {} numbers, {}\n", FormatCount(summary.parameters),
        FormatBytes(summary.parameter_bytes));
  Print("statistics   {}\n", FormatBytes(summary.state_bytes));
  Print("constants    {}\n", FormatBytes(summary.constant_bytes));
  Print("activations  {} made by one forward pass\n",
        FormatBytes(summary.activation_bytes));
  Print("forward      {:.3g} GFLOP\n\n", summary.flops / 1e9);
  Print("{:<26}{:>8}{:>12}{:>14}\n", "operator", "nodes", "GFLOP", "output");
  for (const auto& [name, total] : summary.operators) {
    Print("{:<26}{:>8}{:>12.3g}{:>14}\n", name, FormatCount(total.count),
          total.flops / 1e9, FormatBytes(total.output_bytes));
  }
  Print("\nlargest tensors\n");
  for (models::ValueId id : summary.largest) {
    PrintText(DescribeValue(graph, id));
  }
}

void PrintJson(const models::Graph& graph, const Summary& summary) {
  nlohmann::ordered_json out;
  out["format"] = "loadline.inspect/1";
  out["name"] = graph.name;
  out["parameters"] = summary.parameters;
  out["parameter_bytes"] = summary.parameter_bytes;
  out["state_bytes"] = summary.state_bytes;
  out["constant_bytes"] = summary.constant_bytes;
  out["activation_bytes"] = summary.activation_bytes;
  out["forward_flops"] = summary.flops;
  out["nodes"] = graph.nodes.size();
  for (const auto& [name, total] : summary.operators) {
    out["operators"][name] = {{"nodes", total.count},
                              {"flops", total.flops},
                              {"output_bytes", total.output_bytes}};
  }
  for (models::ValueId id : summary.largest) {
    const models::Value& value = graph.value(id);
    out["largest"].push_back({{"name", value.name},
                              {"type", value.type.ToString()},
                              {"bytes", value.type.bytes()}});
  }
  Print("{}\n", JsonText(out));
}

absl::Status RunInspect(const InspectVerbFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportModel(flags.model, /*training=*/true));
  if (flags.text) {
    PrintText(models::GraphToText(model.graph));
    return absl::OkStatus();
  }
  const Summary summary = Summarize(model.graph);
  if (flags.json) {
    PrintJson(model.graph, summary);
  } else {
    PrintTable(model.graph, summary);
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddInspect(CLI::App* app) {
  auto flags = std::make_shared<InspectVerbFlags>();
  AddModelFlags(app, &flags->model);
  AddJsonFlag(app, &flags->json);
  app->add_flag("--text", flags->text, "The graph in its text form");
  return [flags] { return RunInspect(*flags); };
}

}  // namespace loadline::tools
